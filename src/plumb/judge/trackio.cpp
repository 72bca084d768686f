#include "plumb/judge/trackio.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <chrono>
#include <fstream>
#include <map>
#include <memory>

#include "plumb/base/error.h"
#include "plumb/base/input.h"
#include "plumb/base/json.h"
#include "plumb/base/text.h"
#include "plumb/judge/rows.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHint = "name a project's .db file of trackio";

std::string uri_of(std::string path, const char* options) {
  replace_all(path, "%", "%25");
  replace_all(path, "?", "%3f");
  replace_all(path, "#", "%23");
  return "file:" + path + options;
}

/// Whether SQLite can read a database as it is. Without that, it makes files beside one in the mode of a write-ahead
/// log; but one that has no such log has no writer.
bool is_settled(const std::string& name) {
  char head[20] = {};
  std::ifstream(name, std::ios::binary).read(head, sizeof(head));
  return head[19] == 2 && !fs::exists(name + "-wal") && !fs::exists(name + "-journal");
}

/// A database of somebody else: only stored values are read, none is too long, and reading ends.
class Database {
 public:
  explicit Database(const fs::path& file) : name_(file.string()) {
    require_regular_file(file, kLogFile);
    constexpr uintmax_t kSlowDisk = 10'000'000;  // bytes per second
    deadline_ = Clock::now() + std::chrono::seconds(60 + fs::file_size(file) / kSlowDisk);
    sqlite3* opened = nullptr;
    const int status = sqlite3_open_v2(uri_of(name_, is_settled(name_) ? "?immutable=1" : "").c_str(), &opened,
                                       SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr);
    handle_.reset(opened);
    if (status != SQLITE_OK) fail();
    sqlite3_db_config(opened, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(opened, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_limit(opened, SQLITE_LIMIT_LENGTH, 64 << 20);
    sqlite3_limit(opened, SQLITE_LIMIT_VDBE_OP, 25'000);
    sqlite3_busy_timeout(opened, 5'000);
    const auto is_late = [](void* end) { return Clock::now() > *static_cast<Clock::time_point*>(end) ? 1 : 0; };
    sqlite3_progress_handler(opened, 1'000, is_late, &deadline_);
    each("PRAGMA ignore_check_constraints = ON", [](const auto&) {});  // they are code
    each("PRAGMA quick_check(1)", [&](const auto& row) {
      if (row[0] != "ok") throw Error(fmt::format("{}: is damaged: {}", name_, row[0]), kHint);
    });
  }

  /// Calls take(columns) for each row of the answer. Texts, empty for NULL.
  template <typename Take>
  void each(const std::string& query, const Take& take) const {
    sqlite3_stmt* prepared = nullptr;
    if (sqlite3_prepare_v2(handle_.get(), query.c_str(), -1, &prepared, nullptr) != SQLITE_OK) fail();
    const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(prepared, sqlite3_finalize);
    int status = 0;
    while ((status = sqlite3_step(statement.get())) == SQLITE_ROW) {
      std::vector<std::string> columns;
      for (int i = 0; i < sqlite3_column_count(statement.get()); ++i) {
        const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement.get(), i));
        const auto size = static_cast<size_t>(sqlite3_column_bytes(statement.get(), i));
        columns.emplace_back(text == nullptr ? "" : text, size);
      }
      take(columns);
    }
    if (status != SQLITE_DONE) fail();
  }

  /// Throws Error if it has values that are computed.
  [[nodiscard]] bool has_table(const std::string& table) const {
    bool found = false;
    each("SELECT hidden FROM sqlite_master AS m, pragma_table_xinfo(m.name) WHERE m.type = 'table' AND m.name = '" +
             table + "'",
         [&](const std::vector<std::string>& row) {
           if (row[0] != "0") throw Error(fmt::format("{}: columns of {} are computed", name_, table), kHint);
           found = true;
         });
    return found;
  }

 private:
  using Clock = std::chrono::steady_clock;

  [[noreturn]] void fail() const {
    const int code = sqlite3_errcode(handle_.get());
    const bool written = code == SQLITE_BUSY || code == SQLITE_READONLY;  // it would have to be put in order first
    throw Error(fmt::format("{}: {}", name_,
                            written ? "is being written, or a writer was killed" : sqlite3_errmsg(handle_.get())),
                written ? "let it end; `sqlite3 FILE .tables` puts in order what was left" : kHint);
  }

  std::string name_;
  Clock::time_point deadline_;
  std::unique_ptr<sqlite3, int (*)(sqlite3*)> handle_{nullptr, sqlite3_close};
};

Json object_in(const std::string& text, const fs::path& file) {
  Json json = parse_log(text);
  if (!json.is_object()) throw Error(fmt::format("{}: a row is no JSON object: {:.60}", file.string(), text), kHint);
  return json;
}

}  // namespace

std::vector<RunRecord> read_trackio(const fs::path& file) {
  const Database database(file);
  if (!database.has_table("metrics")) throw Error(fmt::format("{}: has no table of metrics", file.string()), kHint);
  std::vector<RunRecord> records;
  std::map<std::string, size_t> places;  // by name
  database.each("SELECT run_name, step, metrics FROM metrics ORDER BY id", [&](const std::vector<std::string>& row) {
    const auto [place, added] = places.try_emplace(row[0], records.size());
    if (added) records.push_back({.name = row[0]});
    for (const auto& [metric, text] : row_of(object_in(row[2], file))) {
      // trackio writes numbers that are not finite as texts.
      if (const auto value = number_in(text))
        records[place->second].series[metric].push_back({number_in(row[1]).value_or(0), *value});
    }
  });
  if (!database.has_table("configs")) return records;
  database.each("SELECT run_name, config FROM configs ORDER BY id", [&](const std::vector<std::string>& row) {
    const auto place = places.find(row[0]);
    if (place == places.end()) return;
    auto& settings = records[place->second].settings;
    settings.clear();  // the latest configuration of a run is its own
    for (auto& [key, value] : row_of(object_in(row[1], file))) {
      if (!key.starts_with('_')) settings.emplace_back(key, value);
    }
  });
  return records;
}

}  // namespace plumb
