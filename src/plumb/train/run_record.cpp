#include "plumb/train/run_record.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "plumb/base/build_info.h"
#include "plumb/base/error.h"
#include "plumb/base/progress.h"
#include "plumb/ops/torch.h"
#include "plumb/train/seal.h"

namespace plumb {
namespace {

Json sessions_of(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return Json::array();
  try {
    Json sessions = read_sealed(file).at("sessions");
    if (sessions.is_array()) return sessions;
  } catch (const std::exception& error) {  // anything may be in a damaged file
    warn(fmt::format("{}; its sessions are lost", error.what()));
  }
  return Json::array();
}

}  // namespace

void record_session(const std::filesystem::path& run, int64_t step, int64_t processes, int64_t threads) {
  const std::filesystem::path file = run / "run.json";
  Json record = make_document("run", 1);
  record["sessions"] = sessions_of(file);
  Json program = build_info();
  program["libtorch"] = TORCH_VERSION;
  record["sessions"].push_back({{"started", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
                                {"command", command_line()},
                                {"step", step},
                                {"processes", processes},
                                {"threads", threads},
                                {"program", std::move(program)},
                                {"machine", machine_info()}});
  seal(record);
  write_json(file, record);
}

}  // namespace plumb
