// Compares the table of folders in docs/architecture.md with every include in the code.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <regex>

#include "plumb/base/contains.h"
#include "plumb/base/input.h"
#include "plumb/base/text.h"
#include "support/paths.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

/// A row of the table: a folder, and the folders that it may include from.
struct Folder {
  std::string name;
  std::vector<std::string> includes;
  bool all_above = false;
};

/// The words in backquotes within a cell.
std::vector<std::string> quoted(const std::string& cell) {
  static const std::regex name("`([^`]+)`");
  std::vector<std::string> names;
  for (std::sregex_iterator match(cell.begin(), cell.end(), name), end; match != end; ++match) {
    names.push_back((*match)[1]);
  }
  return names;
}

std::vector<Folder> table_of_folders(const std::string& page) {
  std::vector<Folder> folders;
  const size_t begin = page.find("## Folders\n");
  EXPECT_NE(begin, std::string::npos);
  for (const std::string& line : split(page.substr(std::min(begin, page.size())), '\n')) {
    if (!line.starts_with("| `")) {
      if (!folders.empty()) break;
      continue;
    }
    const std::vector<std::string> cells = split(line, '|');  // the first and the last are empty
    EXPECT_EQ(cells.size(), 5U) << line;
    if (cells.size() != 5) continue;
    folders.push_back({quoted(cells[1]).at(0), quoted(cells[3]), cells[3].find("all above") != std::string::npos});
  }
  return folders;
}

/// A source tree, and the prefix of its include paths.
struct Tree {
  std::string root, prefix;
};

const std::vector<Tree>& trees() {
  static const std::vector<Tree> all = {{"src/plumb", "plumb/"}, {"src/corpus", "corpus/"}, {"apps/plumb", ""}};
  return all;
}

class Architecture : public testing::Test {
 protected:
  Architecture() : folders_(table_of_folders(read_file(test::source_directory() / "docs" / "architecture.md"))) {}

  [[nodiscard]] std::optional<size_t> row(const std::string& name) const {
    const auto found = std::find_if(folders_.begin(), folders_.end(), [&](const Folder& f) { return f.name == name; });
    return found == folders_.end() ? std::nullopt : std::optional(static_cast<size_t>(found - folders_.begin()));
  }

  /// The row that a file or an included path belongs to: the longest name that is a prefix of the path. `path` is
  /// relative to its tree.
  [[nodiscard]] std::optional<size_t> row_of(const Tree& tree, const std::string& path) const {
    if (tree.root == "src/corpus") return row("corpus");
    if (tree.root == "apps/plumb") return row("apps");
    std::optional<size_t> best;
    for (size_t i = 0; i < folders_.size(); ++i) {
      const bool fits = path.starts_with(folders_[i].name + "/");
      if (fits && (!best || folders_[i].name.size() > folders_[*best].name.size())) best = i;
    }
    return best;
  }

  [[nodiscard]] bool may_include(size_t from, size_t to) const {
    if (from == to) return true;
    const Folder& folder = folders_[from];
    if (folder.all_above) return to < from;
    return contains(folder.includes, folders_[to].name);
  }

  std::vector<Folder> folders_;
};

TEST_F(Architecture, AFolderIncludesFromFoldersAboveIt) {
  ASSERT_GT(folders_.size(), 10U);
  for (size_t i = 0; i < folders_.size(); ++i) {
    for (const std::string& name : folders_[i].includes) {
      const auto above = row(name);
      EXPECT_TRUE(above && *above < i) << "`" << folders_[i].name << "` includes from `" << name
                                       << "`, which is not above it in the table";
    }
  }
}

TEST_F(Architecture, TheTableHasEveryFolder) {
  const fs::path root = test::source_directory();
  for (const Folder& folder : folders_) {
    if (folder.name == "corpus" || folder.name == "apps") continue;  // separate trees
    EXPECT_TRUE(fs::is_directory(root / "src" / "plumb" / folder.name))
        << "no folder for the row `" << folder.name << "`";
  }
  for (const auto& entry : fs::directory_iterator(root / "src" / "plumb")) {
    if (!entry.is_directory()) continue;
    EXPECT_TRUE(row(entry.path().filename().string())) << "no row for " << entry.path();
  }
}

TEST_F(Architecture, EveryIncludeIsInTheTable) {
  const std::regex include(R"re(^\s*#\s*include\s+"((?:plumb|corpus)/[^"]*)")re");
  size_t checked = 0;
  std::string violations;
  for (const Tree& tree : trees()) {
    const fs::path root = test::source_directory() / tree.root;
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      const std::string ending = entry.path().extension().string();
      if (ending != ".h" && ending != ".cpp") continue;
      const std::string path = fs::relative(entry.path(), root).string();
      const auto from = row_of(tree, path);
      ASSERT_TRUE(from) << entry.path() << " lies in no folder of the table";
      const std::vector<std::string> lines = split(read_file(entry.path()), '\n');
      for (size_t i = 0; i < lines.size(); ++i) {
        std::smatch match;
        if (!std::regex_search(lines[i], match, include)) continue;
        const std::string included = match[1];
        const Tree& target = included.starts_with("plumb/") ? trees()[0] : trees()[1];
        const auto to = row_of(target, included.substr(target.prefix.size()));
        ++checked;
        if (to && may_include(*from, *to)) continue;
        violations +=
            fmt::format("{}/{}:{}: `{}` includes \"{}\"\n", tree.root, path, i + 1, folders_[*from].name, included);
      }
    }
  }
  EXPECT_TRUE(violations.empty()) << violations;
  EXPECT_GT(checked, 300U);
}

}  // namespace
}  // namespace plumb
