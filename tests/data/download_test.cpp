#include "plumb/data/download.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>

#include "plumb/base/checksum.h"
#include "plumb/base/crc32.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "support/errors.h"
#include "support/paths.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

std::string gzip(const std::string& text) {
  z_stream stream{};
  ::deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(text.size() + 100, '\0');
  stream.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<unsigned>(text.size());
  stream.next_out = reinterpret_cast<unsigned char*>(out.data());
  stream.avail_out = static_cast<unsigned>(out.size());
  ::deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  ::deflateEnd(&stream);
  return out;
}

const std::string kText = "Hallo!\nGut.\n";

// A data set of one file that is "downloaded" from a local directory.
class Download : public testing::Test {
 protected:
  Download() {
    fs::create_directory(directory_ / "net");
    set_ = {"tiny", "file://" + (directory_ / "net").string(), "none", {{"a.de", 2, 12, sha256(kText)}}};
  }

  std::string failure(const fs::path& from) {
    try {
      get_data_set(set_, from, directory_ / "out");
    } catch (const Error& error) {
      EXPECT_CONTAINS(error.hint(), "a.de.gz");
      EXPECT_CONTAINS(error.hint(), "--from");
      EXPECT_FALSE(fs::exists(directory_ / "out"));
      return error.what();
    }
    return "no error";
  }

  /// Downloads the data set; false on a machine without curl, which users may be, too.
  bool fetched(const fs::path& out) {
    try {
      get_data_set(set_, {}, out);
    } catch (const Error& error) {
      if (std::string(error.what()).find("cannot run the program `curl`") != std::string::npos) return false;
      throw;
    }
    return true;
  }

  test::TemporaryDirectory directory_;
  PublicDataSet set_;
};

TEST(Checksum, PublishedValues) {
  // Examples for FIPS 180-4; the check value of CRC-32.
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  const std::string digits = "123456789";
  const auto bytes = std::as_bytes(std::span(digits));
  EXPECT_EQ(crc32_of(bytes), 0xCBF43926U);
  EXPECT_EQ(crc32_of(bytes.subspan(4), crc32_of(bytes.first(4))), 0xCBF43926U);
}

TEST(Gunzip, RoundTripAndDamage) {
  std::string text;
  for (int i = 0; i < 50000; ++i) text += std::to_string(i * 7919 % 10007);
  const std::string compressed = gzip(text);
  const auto unpacked = [&](const std::string& archive) { return gunzip(archive, "x", text.size()); };
  EXPECT_EQ(unpacked(compressed), text);
  EXPECT_EQ(unpacked(gzip("")), "");
  for (const std::string& damaged :
       {compressed.substr(0, compressed.size() / 2), compressed.substr(0, compressed.size() - 1), compressed + "x",
        compressed + compressed.substr(0, 10), std::string(), std::string("no gzip at all")})
    EXPECT_EQ(test::message_of([&] { (void)unpacked(damaged); }), "x: not a gzip file, or damaged");
}

/// As pigz and bgzip write them; the latter end with an empty one.
TEST(Gunzip, FilesOfSeveralMembers) {
  EXPECT_EQ(gunzip(gzip("one, ") + gzip("two, ") + gzip("three") + gzip(""), "x", 15), "one, two, three");
  EXPECT_THROW(gunzip(gzip("one, ") + gzip("two, ").substr(1), "x", 15), Error);
}

TEST(Gunzip, NoMoreThanIsExpected) {
  const std::string zeros(size_t{1} << 20, '\0');
  std::string archive;
  for (int i = 0; i < 1000; ++i) archive += gzip(zeros);  // a gigabyte in one megabyte
  EXPECT_EQ(gunzip(gzip(zeros), "x", zeros.size()), zeros);
  for (const uint64_t most : {uint64_t{0}, zeros.size() - 1, zeros.size()})
    EXPECT_EQ(test::message_of([&] { (void)gunzip(archive, "x", most); }),
              "x: has more than " + std::to_string(most) + " bytes, decompressed");
}

/// zlib counts bytes in 32 bits.
TEST(Gunzip, WhatFollowsFourGigabytesLaterCounts) {
  const std::string archive = gzip(kText);
  const size_t size = (size_t{1} << 32) + archive.size();
  void* place = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) GTEST_SKIP() << "there are no addresses for it";
  std::memcpy(place, archive.data(), archive.size());  // only this needs memory
  EXPECT_THROW(gunzip({static_cast<const char*>(place), size}, "x", 100), Error);
  ::munmap(place, size);
}

TEST_F(Download, TakesPlainAndCompressedFiles) {
  for (const auto& [name, content] : {std::pair{"a.de", kText}, {"a.de.gz", gzip(kText)}}) {
    const fs::path from = directory_ / ("from-" + std::string(name));
    write_file_atomic(from / name, content);
    const Json info = get_data_set(set_, from, directory_ / "out");
    EXPECT_EQ(read_file(directory_ / "out" / "a.de"), kText);
    EXPECT_EQ(info["files"]["a.de"]["lines"], 2);
    EXPECT_EQ(read_json(directory_ / "out" / "corpus.json"), info);
  }
}

TEST_F(Download, ReplacesNoOtherDataSet) {
  write_file_atomic(directory_ / "net" / "a.de", kText);
  get_data_set(set_, directory_ / "net", directory_ / "out");
  get_data_set(set_, directory_ / "net", directory_ / "out");  // the same again
  PublicDataSet other = set_;
  other.name = "other";
  test::expect_error([&] { get_data_set(other, directory_ / "net", directory_ / "out"); },
                     "contains the data set tiny");
}

TEST_F(Download, RefusesOtherContent) {
  write_file_atomic(directory_ / "from" / "a.de", "Hallo!\n");
  const std::string message = failure(directory_ / "from");
  EXPECT_CONTAINS(message, "not the a.de of tiny: 1 lines and 7 bytes where 2 and 12 are expected");
}

TEST_F(Download, SaysWhatIsMissing) {
  EXPECT_CONTAINS(failure(directory_ / "net"), "contains neither a.de nor a.de.gz");
  set_.files.front().address = "a.de";  // published as it is
  EXPECT_CONTAINS(test::message_of([&] { get_data_set(set_, directory_ / "net", directory_ / "out"); }),
                  "net: does not contain a.de");
}

TEST_F(Download, FetchesWithCurl) {
  write_file_atomic(directory_ / "net" / "a.de.gz", gzip(kText));
  if (!fetched(directory_ / "out")) GTEST_SKIP() << "needs curl";
  EXPECT_EQ(read_file(directory_ / "out" / "a.de"), kText);
  EXPECT_FALSE(fs::exists(directory_ / "out" / "download"));
  EXPECT_FALSE(fs::exists(directory_ / "out" / "errors"));
}

TEST_F(Download, UsesHttpsAloneAndNoSettingsOfTheUser) {
  set_.url = "http://127.0.0.1:1";
  const std::string refused = failure({});
  if (refused.find("cannot run the program `curl`") != std::string::npos) GTEST_SKIP() << "needs curl";
  EXPECT_CONTAINS(refused, "curl: (1)");  // an unsupported protocol; nothing was connected to
  set_.url = "file://" + (directory_ / "net").string();
  write_file_atomic(directory_ / "net" / "a.de.gz", gzip(kText));
  write_file_atomic(directory_ / "home" / ".curlrc", "range = 0-5\n");
  const char* before = std::getenv("CURL_HOME");
  const std::string home = before == nullptr ? "" : before;
  ::setenv("CURL_HOME", (directory_ / "home").c_str(), 1);
  EXPECT_TRUE(fetched(directory_ / "out"));
  home.empty() ? ::unsetenv("CURL_HOME") : ::setenv("CURL_HOME", home.c_str(), 1);
}

TEST_F(Download, DoesNotWaitForAServerThatStalls) {
  // A stand-in for curl notes how it is called; a real server would stall for a minute.
  write_file_atomic(directory_ / "bin" / "curl", "#!/bin/sh\nfor word; do printf '%s ' \"$word\"; done > " +
                                                     (directory_ / "words").string() + "\nexit 1\n");
  fs::permissions(directory_ / "bin" / "curl", fs::perms::owner_all);
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", ((directory_ / "bin").string() + ":" + path).c_str(), 1);
  EXPECT_CONTAINS(failure({}), "download failed");
  ::setenv("PATH", path.c_str(), 1);
  const std::string words = read_file(directory_ / "words");
  EXPECT_TRUE(words.starts_with("--disable ")) << words;  // of use only as the first option
  for (const char* option : {"--proto-redir =https ", "--speed-limit 1 --speed-time 60 ", "--max-filesize 1048588 "})
    EXPECT_CONTAINS(words, option);
}

TEST_F(Download, RefusesAnArchiveOfMoreThanIsPublished) {
  write_file_atomic(directory_ / "from" / "a.de.gz", gzip(kText + kText));
  EXPECT_CONTAINS(failure(directory_ / "from"), "a.de.gz: has more than 12 bytes, decompressed");
}

TEST_F(Download, ReportsWhatCurlSays) {
  const std::string message = failure({});
  EXPECT_TRUE(message.find("a.de.gz: curl: (37)") != std::string::npos ||
              message.find("cannot run the program `curl`") != std::string::npos)
      << message;
}

TEST_F(Download, RefusesADamagedDownload) {
  write_file_atomic(directory_ / "net" / "a.de.gz", gzip(kText).substr(0, 20));
  const std::string message = failure({});
  EXPECT_TRUE(message.find("or damaged") != std::string::npos || message.find("`curl`") != std::string::npos)
      << message;
}

TEST_F(Download, TakesFilesUnderTheNameAtTheirAddress) {
  set_.files[0].address = "raw/input.txt";
  write_file_atomic(directory_ / "net" / "raw" / "input.txt", kText);
  get_data_set(set_, directory_ / "net" / "raw", directory_ / "out");
  EXPECT_EQ(read_file(directory_ / "out" / "a.de"), kText);
  if (!fetched(directory_ / "fetched")) GTEST_SKIP() << "needs curl";
  EXPECT_EQ(read_file(directory_ / "fetched" / "a.de"), kText);
}

void expect_published(const std::string& name, const fs::path& from) {
  SCOPED_TRACE(name);
  const test::TemporaryDirectory directory;
  const PublicDataSet& set = public_data_set(name);
  const Json info = get_data_set(set, from, directory / "out");
  EXPECT_EQ(info["files"].size(), set.files.size());
  for (const PublicFile& file : set.files) {
    const std::string text = read_file(directory / "out" / file.name);
    EXPECT_EQ(std::ssize(text), file.bytes);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), file.lines);
  }
}

TEST(PublicDataSets, SharedFilesAreThePublishedOnes) {
  PLUMB_REQUIRE_SHARED("data/multi30k");
  const fs::path data = test::shared_directory() / "data";
  expect_published("multi30k", data / "multi30k");
  expect_published("shakespeare", data / "text");
  // The shared questions are in UTF-8, the published ones in Latin-1.
  const test::TemporaryDirectory trec;
  std::string latin1;
  for (const char c : read_file(data / "classification" / "trec" / "train.txt")) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == 0xC3) continue;  // the only first byte of two that occurs
    latin1 += static_cast<char>(byte >= 0x80 ? byte | 0x40 : byte);
  }
  write_file_atomic(trec / "train_5500.label", latin1);
  write_file_atomic(trec / "TREC_10.label", read_file(data / "classification" / "trec" / "test.txt"));
  expect_published("trec", trec.path());
}

TEST(PublicDataSets, AnUnknownOneIsAnError) {
  const Error error = test::expect_error([] { public_data_set("shakspeare"); }, "'shakspeare'");
  EXPECT_EQ(error.hint(), "known: multi30k, shakespeare, trec");
}

}  // namespace
}  // namespace plumb
