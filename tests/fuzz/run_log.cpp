// Logs of other programs. The first line of the input is the kind of file: csv, tsv, jsonl or json. Whatever follows,
// its runs are read or refused, no metric is empty, and lines that are written again say the same.
#include <cstdlib>

#include "folder.h"
#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/judge/log_table.h"
#include "plumb/judge/run_record.h"

namespace {

using namespace plumb;

/// The cells of a line of JSON, by column.
std::string cells_of(std::string_view line) {
  LogTable table("log");
  std::string text;
  if (!table.add_json(line)) return text;
  for (const LogTable::Cell& cell : table.line(0))
    text += table.name_of(cell.column) + '\0' + table.text_at(cell.text) + '\0';
  return text;
}

void check_line(std::string_view line) {
  const Json json = parse_log(line);
  if (json.is_object() && cells_of(json.dump()) != cells_of(line)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(input.find('\n'), input.size());
  const std::string_view content = input.substr(std::min(end + 1, input.size()));
  for (const std::string kind : {"csv", "tsv", "jsonl", "json"}) {
    if (input.substr(0, end) != kind) continue;
    const std::string name = "log." + kind;
    folder.write(name, content);
    try {
      const std::vector<RunRecord> records = read_run_records(folder.path() / name, {{"loss"}});
      if (records.empty()) std::abort();
      for (const RunRecord& record : records) {
        for (const auto& [metric, values] : record.series) {
          if (values.empty()) std::abort();
        }
      }
    } catch (const Error&) {
    }
  }
  for (const std::string& line : split(content, '\n')) check_line(line);
  return 0;
}
