// Downloading and verifying public data sets.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "plumb/base/json.h"

namespace plumb {

/// One text file of a public data set, and its expected decompressed contents.
struct PublicFile {
  std::string name;
  int64_t lines;
  int64_t bytes;
  std::string sha256;
  std::string address{};  // relative to the data set's; empty: NAME.gz
};

/// A public data set; addresses ending in ".gz" are of compressed files.
struct PublicDataSet {
  std::string name;
  std::string url;
  std::string license;
  std::vector<PublicFile> files;
};

/// The known data sets.
const std::vector<PublicDataSet>& public_data_sets();

/// The known data set of this name. Throws Error, listing the names, if there is no such data set.
const PublicDataSet& public_data_set(const std::string& name);

/// Downloads all files of a data set with `curl` or, if the path `from` is not empty, takes them from that directory
/// (under its name, or the one it has at its address, such as NAME.gz); verifies them, and writes them atomically
/// to the directory `out`. Returns a document that describes them. Throws Error if a file cannot be obtained (the hint
/// explains how to proceed without a network) or differs from the published one. Only HTTPS is used, and no settings of
/// the user's for curl.
Json get_data_set(const PublicDataSet& set, const std::filesystem::path& from, const std::filesystem::path& out);

/// Decompresses gzip data of one or more members, as pigz and bgzip write them; throws Error naming `name` if it is
/// damaged or truncated, or if the result would have more than `most` bytes.
std::string gunzip(std::string_view compressed, const std::string& name, uint64_t most);

}  // namespace plumb
