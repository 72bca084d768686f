#include "plumb/data/download.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"
#include "plumb/data/checksum.h"

extern char** environ;

namespace plumb {
namespace fs = std::filesystem;
namespace {

// How to proceed without network access.
std::string by_hand(const PublicDataSet& set) {
  std::vector<std::string> names;
  for (const PublicFile& file : set.files) names.push_back(file.name + ".gz");
  return fmt::format("without a network: download {} from {} elsewhere into one directory and pass it as --from",
                     join(names), set.url);
}

// Runs a program without a shell, with standard error redirected to `errors`. Returns its exit status, or -1 if it was
// killed. Throws Error if it cannot be run.
int run(std::vector<std::string> arguments, const fs::path& errors) {
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 2, errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child = 0;
  const int failure = ::posix_spawnp(&child, pointers[0], &actions, nullptr, pointers.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) {
    throw Error(fmt::format("cannot run the program `{}`: {}", arguments[0], std::strerror(failure)));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw Error(fmt::format("`{}`: {}", arguments[0], std::strerror(errno)));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string download(const PublicDataSet& set, const std::string& name, const fs::path& directory) {
  const std::string url = fmt::format("{}/{}.gz", set.url, name);
  const fs::path file = directory / "download";
  const fs::path errors = directory / "errors";
  const int status = run({"curl", "--fail", "--silent", "--show-error", "--location", "--connect-timeout", "20",
                          "--retry", "2", "--output", file.string(), "--", url},
                         errors);
  if (status != 0) {
    const std::string said = read_file(errors);
    throw Error(fmt::format("{}: {}", url, said.empty() ? "download failed" : said.substr(0, said.find('\n'))));
  }
  std::string text = gunzip(read_file(file), url);
  fs::remove(file);
  fs::remove(errors);
  return text;
}

std::string take(const fs::path& from, const std::string& name) {
  const fs::path plain = from / name;
  if (fs::exists(plain)) return read_file(plain);
  const fs::path compressed = from / (name + ".gz");
  if (fs::exists(compressed)) return gunzip(read_file(compressed), compressed.string());
  throw Error(fmt::format("{}: contains neither {} nor {}.gz", from.string(), name, name));
}

void verify(const PublicDataSet& set, const PublicFile& file, const std::string& text, const std::string& origin) {
  if (sha256(text) == file.sha256) return;
  const int64_t lines = std::count(text.begin(), text.end(), '\n');
  throw Error(fmt::format("{}: not the {} of {}: {} lines and {} bytes where {} and {} are expected, or other content",
                          origin, file.name, set.name, with_thousands(lines), with_thousands(std::ssize(text)),
                          with_thousands(file.lines), with_thousands(file.bytes)),
              by_hand(set));
}

}  // namespace

const PublicDataSet& multi30k() {
  static const PublicDataSet set = {
      "multi30k",
      "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw",
      "non-commercial research; the captions stem from Flickr30k",
      {
          {"train.de", 29000, 2110398, "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72"},
          {"train.en", 29000, 1801238, "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6"},
          {"val.de", 1014, 75981, "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660"},
          {"val.en", 1014, 63297, "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227"},
          {"test_2016_flickr.de", 1000, 70649, "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16"},
          {"test_2016_flickr.en", 1000, 62076, "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182"},
          {"test_2017_flickr.de", 1000, 64059, "c3078bc3b36808bf9d20eb2347ed6137016179ef59ec0d2b9b8ecc3fb2880081"},
          {"test_2017_flickr.en", 1000, 55242, "ce1450ddc5ab0834502579d77a170849952e15a2938b34cc503bdc25ebb4fb98"},
      }};
  return set;
}

Json get_data_set(const PublicDataSet& set, const fs::path& from, const fs::path& out) {
  check_output_directory(out, "corpus");
  Json info = make_document("corpus", 1);
  info["name"] = set.name;
  info["origin"] = from.empty() ? set.url : from.string();
  info["license"] = set.license;
  const fs::path directory = out.has_filename() ? out : out.parent_path();
  write_directory_atomic(directory, [&](const fs::path& temporary) {
    claim_output_directory(temporary, "corpus");
    Progress progress(set.name, std::ssize(set.files));
    int64_t done = 0;
    for (const PublicFile& file : set.files) {
      std::string text;
      try {
        text = from.empty() ? download(set, file.name, temporary) : take(from, file.name);
      } catch (const Error& error) {
        throw Error(error.what(), by_hand(set));
      }
      verify(set, file, text, from.empty() ? fmt::format("{}/{}.gz", set.url, file.name) : (from / file.name).string());
      write_file_atomic(temporary / file.name, text);
      info["files"][file.name] = {{"lines", file.lines}, {"bytes", file.bytes}, {"sha256", file.sha256}};
      progress.update(++done, file.name);
    }
    write_json(temporary / "corpus.json", info);
  });
  return info;
}

std::string gunzip(std::string_view compressed, const std::string& name) {
  const auto damaged = [&] { return Error(fmt::format("{}: not a gzip file, or damaged", name)); };
  z_stream stream{};
  if (::inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) throw Error("cannot initialize zlib");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, ::inflateEnd);
  stream.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(compressed.data()));
  stream.avail_in = static_cast<unsigned int>(compressed.size());
  std::string text;
  std::array<char, 65536> buffer{};
  int status = Z_OK;
  while (status != Z_STREAM_END) {
    stream.next_out = reinterpret_cast<unsigned char*>(buffer.data());
    stream.avail_out = buffer.size();
    status = ::inflate(&stream, Z_NO_FLUSH);
    // Z_BUF_ERROR: the input is truncated.
    if (status != Z_OK && status != Z_STREAM_END) throw damaged();
    text.append(buffer.data(), buffer.size() - stream.avail_out);
  }
  if (stream.avail_in != 0) throw damaged();
  return text;
}

}  // namespace plumb
