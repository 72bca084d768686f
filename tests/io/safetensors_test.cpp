// Files that violate the format: errors name the file and the tensor. Reading valid files is compared with PyTorch in
// tests/model.
#include "plumb/io/safetensors.h"
#include "plumb/base/input.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <ctime>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "support/errors.h"
#include "support/paths.h"

namespace plumb {
namespace {

class Safetensors : public ::testing::Test {
 protected:
  /// A file with this header and this many bytes of data.
  std::filesystem::path file(const std::string& header, size_t bytes) {
    auto path = folder_ / "weights";
    uint64_t length = header.size();
    std::string content(8, '\0');
    for (char& byte : content) {
      byte = static_cast<char>(length & 0xFF);
      length >>= 8;
    }
    for (size_t i = 0; i < bytes; ++i) data_ += static_cast<char>(i);
    write_file_atomic(path, content + header + data_);
    data_.clear();
    return path;
  }

  std::string error_of(const std::string& header, size_t bytes) {
    const auto path = file(header, bytes);
    try {
      load_safetensors(path);
    } catch (const Error& error) {
      const std::string what = error.what();
      const std::string name = path.string() + ": ";
      return what.starts_with(name) ? what.substr(name.size()) : "without the file's name: " + what;
    }
    return "accepted";
  }

  static std::string entry(const std::string& name, const std::string& shape, const std::string& offsets,
                           const std::string& type = "F32") {
    return "\"" + name + R"(":{"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
  }

  test::TemporaryDirectory folder_;
  std::string data_;
};

TEST_F(Safetensors, AreReadInAnyOrderWithSpacesAndEmptyTensors) {
  const auto path = file("{" + entry("b", "[1]", "[8,12]") + "," + entry("none", "[0,3]", "[8,8]") + "," +
                             entry("a", "[2,1]", "[0,8]") + R"(,"__metadata__":{"x":"y"}})" + "   ",
                         12);
  const NamedTensors tensors = load_safetensors(path);
  ASSERT_EQ(tensors.size(), 3U);
  EXPECT_EQ(tensors[0].first, "b");
  EXPECT_EQ(tensors[1].second.sizes(), (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(tensors[2].second.sizes(), (std::vector<int64_t>{2, 1}));
  const auto* bytes = static_cast<const unsigned char*>(tensors[0].second.data_ptr());
  EXPECT_EQ(bytes[0], 8);
  EXPECT_EQ(load_safetensors(file(entry("x", "[]", "[0,4]").insert(0, "{") + "}", 4))[0].second.dim(), 0);
  EXPECT_TRUE(load_safetensors(file("{}", 0)).empty());
}

TEST_F(Safetensors, EveryTensorHasItsOwnPlace) {
  EXPECT_EQ(error_of("{" + entry("a", "[2]", "[0,8]") + "," + entry("b", "[2]", "[4,12]") + "}", 12),
            "tensors 'a' and 'b' overlap");
  EXPECT_EQ(error_of("{" + entry("a", "[2]", "[0,8]") + "," + entry("b", "[2]", "[0,8]") + "}", 8),
            "tensors 'a' and 'b' overlap");
  EXPECT_EQ(error_of("{" + entry("a", "[1]", "[0,4]") + "," + entry("b", "[1]", "[8,12]") + "}", 12),
            "4 bytes before tensor 'b' belong to no tensor");
  EXPECT_EQ(error_of("{" + entry("a", "[1]", "[0,4]") + "}", 9), "5 bytes at the end belong to no tensor");
  EXPECT_EQ(error_of("{}", 1), "1 bytes at the end belong to no tensor");
  EXPECT_EQ(error_of("{" + entry("a", "[2]", "[0,8]") + "}", 7),
            "truncated: tensor 'a' of shape (2) ends at byte 8 of 7");
  EXPECT_EQ(error_of("{" + entry("a", "[1]", "[0,4]") + "," + entry("a", "[1]", "[4,8]") + "}", 8),
            "contains two tensors named 'a'");
}

TEST_F(Safetensors, ShapesThatAreNoneAreRefused) {
  const auto of = [&](const std::string& shape, const std::string& offsets = "[0,8]") {
    return error_of("{" + entry("a", shape, offsets) + "}", 8);
  };
  EXPECT_EQ(of("[8.9]"), "tensor 'a': 8.9 in its shape is not a non-negative integer");
  EXPECT_EQ(of("[2.0]"), "tensor 'a': 2.0 in its shape is not a non-negative integer");
  EXPECT_EQ(of("[-2]"), "tensor 'a': -2 in its shape is not a non-negative integer");
  EXPECT_EQ(of("[true]"), "tensor 'a': true in its shape is not a non-negative integer");
  EXPECT_EQ(of("2"), "tensor 'a': its shape is not a list");
  EXPECT_EQ(of("[2]", "[-8,0]"), "tensor 'a': -8 in its data_offsets is not a non-negative integer");
  EXPECT_EQ(of("[2]", "[8,0]"), "the data offsets of tensor 'a' do not match its shape (2)");
  EXPECT_EQ(of("[2]", "[0,8,16]"), "the data offsets of tensor 'a' do not match its shape (2)");
  EXPECT_EQ(of("[3]"), "the data offsets of tensor 'a' do not match its shape (3)");
  // 2^62 · 4 and 2^32 · 2^32 · 4 overflow to 0 in 64 bits.
  EXPECT_EQ(of("[4611686018427387904]", "[0,0]"),
            "the data offsets of tensor 'a' do not match its shape (4611686018427387904)");
  EXPECT_EQ(of("[4294967296,4294967296]", "[0,0]"),
            "the data offsets of tensor 'a' do not match its shape (4294967296, 4294967296)");
  EXPECT_EQ(of("[0,18446744073709551615]", "[0,0]"),
            "the data offsets of tensor 'a' do not match its shape (0, 18446744073709551615)");
  // LibTorch multiplies the dimensions of an empty tensor, too.
  EXPECT_EQ(of("[4294967296, 4294967296, 0]", "[0,0]"),
            "the data offsets of tensor 'a' do not match its shape (4294967296, 4294967296, 0)");
  EXPECT_EQ(of("[99999999999999999999]"), "tensor 'a': 1e+20 in its shape is not a non-negative integer");
}

TEST_F(Safetensors, HeadersThatAreNoneAreRefused) {
  for (const char* header : {"", "[]", "{", "null", "{}x"})
    EXPECT_CONTAINS(error_of(header, 8), "not a safetensors file") << header;
  for (const char* value : {"[]", "1", "null", "{}", R"({"shape":[{}]})", R"({"dtype":{}})"})
    EXPECT_EQ(error_of(std::string(R"({"a":)") + value + "}", 0), "malformed header entry of tensor 'a'") << value;
  EXPECT_EQ(error_of(R"({"__metadata__":{"a":{}}})", 0), "malformed header entry of tensor '__metadata__'");
  EXPECT_EQ(error_of(R"({"a":{"shape":[1],"data_offsets":[0,4]}})", 4), "malformed header entry of tensor 'a'");
  EXPECT_EQ(error_of("{" + entry("a", "[1]", "[0,1]", "F8_E4M3") + "}", 1),
            "tensor 'a' has elements of unknown type F8_E4M3");
}

TEST_F(Safetensors, HeadersAreBounded) {
  const auto named = [](size_t bytes) { return "{" + entry(std::string(bytes, 'n'), "[1]", "[0,4]") + "}"; };
  EXPECT_EQ(error_of(named(1024), 4), "accepted");
  EXPECT_EQ(error_of(named(1025), 4), "the name of a tensor has 1025 bytes; at most 1024 are read");
  std::string ones = "1";
  for (int i = 0; i < 63; ++i) ones += ",1";
  EXPECT_EQ(error_of("{" + entry("a", "[" + ones + "]", "[0,4]") + "}", 4), "accepted");
  EXPECT_EQ(error_of("{" + entry("a", "[" + ones + ",1]", "[0,4]") + "}", 4),
            "tensor 'a': its shape has more than 64 numbers");
  // A hundred million spaces and one, which need no space on the disk.
  const auto path = folder_ / "spaces";
  write_file_atomic(path, std::string("\x01\xE1\xF5\x05\0\0\0\0", 8));
  std::filesystem::resize_file(path, 8 + 100'000'001);
  EXPECT_EQ(test::message_of([&] { load_safetensors(path); }),
            path.string() + ": its header has 100000001 bytes; the format allows 100000000");
}

/// The time grows with the number of tensors, not with its square, which would be minutes.
TEST_F(Safetensors, AHundredThousandTensorsAreRead) {
  constexpr int kTensors = 100'000;
  std::string header = R"({"__metadata__":{"crc32.t7":"00000000")";
  for (int i = 0; i < kTensors; ++i) header += ",\"m" + std::to_string(i) + "\":\"\"";
  header += "}";
  for (int i = 0; i < kTensors; ++i) {
    const std::string begin = std::to_string(i), end = std::to_string(i + 1);
    header += "," + entry("t" + begin, "[1]", "[" + begin + "," + end + "]", "U8");
  }
  const std::clock_t before = std::clock();
  SafetensorsReader reader(file(header + "}", kTensors));
  ASSERT_EQ(reader.tensors().size(), static_cast<size_t>(kTensors));
  EXPECT_EQ(reader.tensors()[99'999].name, "t99999");
  EXPECT_EQ(reader.read("t99999").item<int64_t>(), 99'999 % 256);
  EXPECT_CONTAINS(test::message_of([&] { (void)reader.read("t7"); }), "'t7' is damaged");
  EXPECT_LT(std::clock() - before, 60 * CLOCKS_PER_SEC);
}

TEST_F(Safetensors, AreFilesThatFitIntoMemory) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_CONTAINS(test::message_of([&] { load_safetensors(folder_ / "pipe"); }), "is a pipe");
  EXPECT_CONTAINS(test::message_of([&] { load_safetensors("/dev/zero"); }), "is a device");
  EXPECT_CONTAINS(test::message_of([&] { load_safetensors(folder_.path()); }), "is a directory");
  EXPECT_CONTAINS(test::message_of([&] { load_safetensors(folder_ / "none"); }), "cannot be read");
  // Four terabytes that need no space on the disk.
  const std::string header = "{" + entry("a", "[4398046511104]", "[0,4398046511104]", "U8") + "}";
  const auto path = file(header, 0);
  std::error_code failure;
  std::filesystem::resize_file(path, 8 + header.size() + 4'398'046'511'104, failure);
  if (failure) GTEST_SKIP() << "a file cannot be so large here";
  EXPECT_CONTAINS(test::message_of([&] { load_safetensors(path); }), "are more than the memory of this machine");
}

TEST_F(Safetensors, EveryTensorHasAChecksum) {
  const auto path = folder_ / "model";
  save_safetensors(path, {{"a", at::ones({3})}, {"none", at::ones({0, 2})}, {"b", at::arange(4)}}, {{"x", "y"}});
  ASSERT_EQ(load_safetensors(path).size(), 3U);
  std::string content = read_file(path);
  // CRC-32 of three float32 ones, by Python's zlib.
  EXPECT_CONTAINS(content, R"("crc32.a":"dc7c4e94")");
  content.back() = 1;
  write_file_atomic(path, content);
  EXPECT_EQ(test::message_of([&] { load_safetensors(path); }),
            path.string() + ": tensor 'b' is damaged: its checksum is wrong");
}

}  // namespace
}  // namespace plumb
