#include "plumb/judge/trackio.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <memory>

#include "plumb/base/error.h"
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

class Database {
 public:
  explicit Database(const fs::path& file) : name_(file.string()) {
    // SQLite makes files beside a database that a program may be writing; beside one that none is, it need not.
    const bool written = fs::exists(name_ + "-wal");
    sqlite3* opened = nullptr;
    const int status = sqlite3_open_v2(uri_of(name_, written ? "" : "?immutable=1").c_str(), &opened,
                                       SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr);
    handle_.reset(opened);
    if (status != SQLITE_OK) fail();
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
        const unsigned char* text = sqlite3_column_text(statement.get(), i);
        columns.emplace_back(text == nullptr ? "" : reinterpret_cast<const char*>(text));
      }
      take(columns);
    }
    if (status != SQLITE_DONE) fail();
  }

  [[nodiscard]] bool has_table(const std::string& table) const {
    bool found = false;
    each("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '" + table + "'",
         [&](const std::vector<std::string>&) { found = true; });
    return found;
  }

 private:
  [[noreturn]] void fail() const { throw Error(fmt::format("{}: {}", name_, sqlite3_errmsg(handle_.get())), kHint); }

  std::string name_;
  std::unique_ptr<sqlite3, int (*)(sqlite3*)> handle_{nullptr, sqlite3_close};
};

Json object_in(const std::string& text, const fs::path& file) {
  Json json = parse_or_discard(text);
  if (!json.is_object()) throw Error(fmt::format("{}: a row is no JSON object: {:.60}", file.string(), text), kHint);
  return json;
}

}  // namespace

std::vector<RunRecord> read_trackio(const fs::path& file) {
  const Database database(file);
  if (!database.has_table("metrics")) throw Error(fmt::format("{}: has no table of metrics", file.string()), kHint);
  std::vector<RunRecord> records;
  database.each("SELECT run_name, step, metrics FROM metrics ORDER BY id", [&](const std::vector<std::string>& row) {
    auto found = std::find_if(records.begin(), records.end(), [&](const RunRecord& one) { return one.name == row[0]; });
    if (found == records.end()) found = records.insert(records.end(), RunRecord{.name = row[0]});
    for (const auto& [metric, text] : row_of(object_in(row[2], file))) {
      // trackio writes numbers that are not finite as texts.
      if (const auto value = number_in(text)) found->series[metric].push_back({number_in(row[1]).value_or(0), *value});
    }
  });
  if (!database.has_table("configs")) return records;
  database.each("SELECT run_name, config FROM configs ORDER BY id", [&](const std::vector<std::string>& row) {
    for (RunRecord& record : records) {
      if (record.name != row[0]) continue;
      record.settings.clear();  // the latest configuration of a run is its own
      for (auto& [key, value] : row_of(object_in(row[1], file))) {
        if (!key.starts_with('_')) record.settings.emplace_back(key, value);
      }
    }
  });
  return records;
}

}  // namespace plumb
