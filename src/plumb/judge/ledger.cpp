#include "plumb/judge/ledger.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plumb/base/error.h"
#include "plumb/base/json_fields.h"
#include "plumb/judge/direction.h"

namespace plumb {
namespace {

constexpr std::string_view kLedgerBegin = "{\"schema\":\"plumb.gate_ledger/1\"";

/// The first line.
struct LedgerHeader {
  std::string metric;
  bool larger_is_better = false;
  std::string base;
  GateRule rule;
};
void describe(Fields& field, LedgerHeader& header) {
  field("metric", header.metric);
  field("larger_is_better", header.larger_is_better);
  field("base", header.base);
  describe(field, header.rule);
}

struct Ledger {
  std::optional<LedgerHeader> header;
  std::vector<GateRun> runs;
};

Ledger read_ledger(const std::filesystem::path& path, std::vector<std::string>& notes) {
  Ledger ledger;
  LineReader lines(path, kLogFile);
  while (const auto line = lines.next()) {
    const Json json = parse_or_discard(*line);
    if (!ledger.header && !line->starts_with(kLedgerBegin) && !kLedgerBegin.starts_with(*line))
      throw Error(fmt::format("{}: is no ledger of plumb judge --gate", path.string()), "name a new file");
    if (json.is_object()) {
      if (!ledger.header) {
        ledger.header = from_described_json<LedgerHeader>(json);
      } else {
        ledger.runs.push_back(from_described_json<GateRun>(json));
      }
    } else if (!line->empty()) {
      notes.push_back(
          fmt::format("{}, line {}: skipped, as it was not written to its end", path.string(), lines.count()));
    }
  }
  return ledger;
}

/// What a request says of its series, and otherwise the ledger.
LedgerHeader header_of(const std::optional<LedgerHeader>& own, const GateRequest& request) {
  LedgerHeader header = own.value_or(LedgerHeader{.base = request.base});
  const auto set = [](auto& value, const auto& asked) {
    if (asked) value = *asked;
  };
  if (!request.metric.empty()) header.metric = request.metric;
  if (!own) set(header.larger_is_better, larger_is_better_by_name(header.metric));
  set(header.larger_is_better, request.larger_is_better);
  set(header.rule.error, request.error);
  set(header.rule.margin, request.margin);
  set(header.rule.seeds, request.seeds);
  if (!own && !request.larger_is_better && !larger_is_better_by_name(header.metric))
    throw UsageError(fmt::format("is more of \"{}\" better, or less?", header.metric),
                     "say once whether larger is better");
  if (own && described_json(header) != described_json(*own))
    throw UsageError(
        fmt::format("the ledger is of {}, not of {}", described_json(*own).dump(), described_json(header).dump()),
        "begin another ledger for another series");
  return header;
}

/// Those that the ledger does not have.
std::vector<GateRun> new_runs(std::vector<GateRun> known, const GateRequest& request) {
  std::vector<GateRun> added;
  for (const GateRun& run : request.runs) {
    const auto equal = [&](double value) {
      return value == run.value || !(std::isfinite(value) || std::isfinite(run.value));
    };
    const auto at = std::find_if(known.begin(), known.end(), [&](const GateRun& one) {
      return one.arm == run.arm && one.seed == run.seed && (!run.seed.empty() || equal(one.value));
    });
    if (at == known.end()) {
      added.push_back(run);
    } else if (!equal(at->value)) {
      throw Error(
          fmt::format("the ledger has {:g} for seed {} of {}, not {:g}", at->value, run.seed, run.arm, run.value),
          "give runs that have ended, and another seed to another run");
    } else if (run.seed.empty()) {
      known.erase(at);  // another run with this value is another run
    }
  }
  return added;
}

template <typename T>
std::string line_of(const T& value) {
  return described_json(value).dump(-1, ' ', true, Json::error_handler_t::replace) +
         '\n';  // ASCII, so that any part can be read
}

}  // namespace

void describe(Fields& field, GateRun& run) {
  field("arm", run.arm);
  field("seed", run.seed);
  field("value", run.value);
}

GateAnswer ask_gate(const std::filesystem::path& path, const GateRequest& request, std::vector<std::string>& notes) {
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  int locked = -1;
  while (file.is_open() && (locked = ::flock(file.get(), LOCK_EX)) != 0 && errno == EINTR) {
  }
  if (locked != 0) throw Error(fmt::format("{}: {}", path.string(), std::strerror(errno)), "the ledger is a file");
  const Ledger ledger = read_ledger(path, notes);
  const LedgerHeader header = header_of(ledger.header, request);
  const std::vector<GateRun> added = new_runs(ledger.runs, request);
  std::string text = ledger.header ? "" : std::string(kLedgerBegin) + ',' + line_of(header).substr(1);
  for (const GateRun& run : added) text += line_of(run);
  Gate gate(header.rule, header.base);
  const auto add = [&](const std::vector<GateRun>& runs) {
    for (const GateRun& run : runs) gate.add(run.arm, header.larger_is_better ? -run.value : run.value);
  };
  add(ledger.runs);
  if (!request.best.empty() && gate.best() != request.best && gate.best() != request.candidate)
    throw UsageError(fmt::format("the best so far is {}, not {}", gate.best(), request.best), "compare with its runs");
  add(added);
  const GateAnswer answer = gate.answer(request.candidate);
  char last = '\n';
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  if (size > 0 && ::pread(file.get(), &last, 1, size - 1) == 1 && last != '\n') text.insert(0, "\n");
  if (!file.write(text)) throw write_failure(path.string());
  return answer;
}

}  // namespace plumb
