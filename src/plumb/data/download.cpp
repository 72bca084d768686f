#include "plumb/data/download.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <memory>

#include "plumb/base/checksum.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/base/process.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"

namespace plumb {
namespace fs = std::filesystem;
namespace {

/// Its address, relative to the data set's.
std::string address_of(const PublicFile& file) { return file.address.empty() ? file.name + ".gz" : file.address; }

std::string url_of(const PublicDataSet& set, const PublicFile& file) { return set.url + "/" + address_of(file); }

// How to proceed without network access.
std::string by_hand(const PublicDataSet& set) {
  std::vector<std::string> names;
  for (const PublicFile& file : set.files) names.push_back(address_of(file));
  return fmt::format("without a network: download {} from {} elsewhere into one directory and pass it as --from",
                     join(names), set.url);
}

/// The text of a file that may be compressed, as its name says.
std::string text_in(const fs::path& path, const std::string& name, int64_t bytes) {
  const auto most = static_cast<uint64_t>(bytes);
  return name.ends_with(".gz") ? gunzip(read_file(path), name, most) : read_file(path);
}

/// Downloads a file of this many bytes, or one that has as many when it is decompressed.
std::string download(const std::string& url, int64_t bytes, const fs::path& directory) {
  constexpr int64_t kOverhead = 1 << 20;
  const fs::path file = directory / "download";
  const fs::path errors = directory / "errors";
  // --disable comes first: no ~/.curlrc. Less than a byte per second in a minute is a server that stalls.
  std::vector<std::string> command = split(
      "curl --disable --fail --silent --show-error --location --proto-redir =https --connect-timeout 20 "
      "--speed-limit 1 --speed-time 60 --retry 2 --proto",
      ' ');
  command.insert(command.end(), {url.starts_with("file:") ? "=file" : "=https", "--max-filesize",
                                 std::to_string(bytes + kOverhead), "--output", file.string(), "--", url});
  if (run_process(command, {.errors = errors.string()}) != 0) {
    const std::string message = read_file(errors);
    throw Error(
        fmt::format("{}: {}", url, message.empty() ? "download failed" : message.substr(0, message.find('\n'))));
  }
  std::string text = text_in(file, url, bytes);
  fs::remove(file);
  fs::remove(errors);
  return text;
}

std::string take(const fs::path& from, const PublicFile& file) {
  const std::string published = fs::path(address_of(file)).filename();
  for (const std::string& name : {file.name, published}) {
    const fs::path path = from / name;
    if (fs::exists(path)) return text_in(path, path.string(), file.bytes);
  }
  if (published == file.name) throw Error(fmt::format("{}: does not contain {}", from.string(), file.name));
  throw Error(fmt::format("{}: contains neither {} nor {}", from.string(), file.name, published));
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

Json get_data_set(const PublicDataSet& set, const fs::path& from, const fs::path& out) {
  check_output_directory(out, "corpus");
  if (fs::exists(out / "corpus.json")) {
    const std::string other = take_json(out / "corpus.json", [](const Json& json) { return json.value("name", ""); });
    if (other != set.name)
      throw Error(fmt::format("{}: contains the data set {}", out.string(), other), "give another --out");
  }
  Json info = make_document("corpus", 1);
  info["name"] = set.name;
  info["origin"] = from.empty() ? set.url : from.string();
  info["license"] = set.license;
  const fs::path directory = out.has_filename() ? out : out.parent_path();
  write_directory_atomic(
      directory, "corpus",
      [&](const fs::path& temporary) {
        claim_output_directory(temporary, "corpus");
        Progress progress(set.name, std::ssize(set.files));
        int64_t done = 0;
        for (const PublicFile& file : set.files) {
          std::string text;
          try {
            text = from.empty() ? download(url_of(set, file), file.bytes, temporary) : take(from, file);
          } catch (const Error& error) {
            throw Error(error.what(), by_hand(set));
          }
          verify(set, file, text, from.empty() ? url_of(set, file) : (from / file.name).string());
          write_file_atomic(temporary / file.name, text);
          info["files"][file.name] = {{"lines", file.lines}, {"bytes", file.bytes}, {"sha256", file.sha256}};
          progress.update(++done, file.name);
        }
        write_json(temporary / "corpus.json", info);
      },
      Links::followed);
  return info;
}

std::string gunzip(std::string_view compressed, const std::string& name, uint64_t most) {
  z_stream stream{};
  if (::inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) throw Error("cannot initialize zlib");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, ::inflateEnd);
  std::string text;
  std::array<char, 65536> buffer{};
  for (int status = Z_OK; status != Z_STREAM_END || stream.avail_in > 0 || !compressed.empty();) {
    if (status == Z_STREAM_END) ::inflateReset(&stream);  // another member follows
    if (stream.avail_in == 0) {                           // zlib counts in 32 bits
      const size_t part = std::min(compressed.size(), size_t{1} << 30);
      stream.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(compressed.data()));
      stream.avail_in = static_cast<unsigned int>(part);
      compressed.remove_prefix(part);
    }
    stream.next_out = reinterpret_cast<unsigned char*>(buffer.data());
    stream.avail_out = buffer.size();
    status = ::inflate(&stream, Z_NO_FLUSH);
    // Z_BUF_ERROR: the input is truncated.
    if (status != Z_OK && status != Z_STREAM_END) throw Error(fmt::format("{}: not a gzip file, or damaged", name));
    text.append(buffer.data(), buffer.size() - stream.avail_out);
    if (text.size() > most) throw Error(fmt::format("{}: has more than {} bytes, decompressed", name, most));
  }
  return text;
}

}  // namespace plumb
