#include "plumb/base/key_list.h"

#include <gtest/gtest.h>

#include "plumb/base/options.h"

namespace plumb {
namespace {

struct Inner {
  std::vector<int64_t> at = {1, 2};
};
void describe(Fields& field, Inner& inner) { field("at", inner.at); }

struct Outer {
  double rate = 2;
  bool on = true;
  std::string name = "a \"b\"";
  Inner inner;
  std::vector<Inner> many;
};
void describe(Fields& field, Outer& outer) {
  field("rate", outer.rate, "how fast");
  field("on", outer.on);
  field.section(
      "inner", [&](Fields& fields) { describe(fields, outer.inner); }, false);
  field.sections("many", outer.many);
  field("name", outer.name, "what it is called");
}

TEST(KeyList, HasEveryKeyWithValueAndMeaning) {
  const std::vector<KeyList::Key> keys = list_keys(Outer());
  ASSERT_EQ(keys.size(), 4U);
  const auto expect = [](const KeyList::Key& key, const char* name, const char* value, const char* meaning) {
    EXPECT_EQ(key.name, name);
    EXPECT_EQ(key.value, value);
    EXPECT_EQ(key.meaning, meaning);
  };
  expect(keys[0], "rate", "2.0", "how fast");
  expect(keys[1], "on", "true", "");
  expect(keys[2], "inner.at", "[1, 2]", "");
  expect(keys[3], "name", "\"a \\\"b\\\"\"", "what it is called");
}

TEST(KeyList, ReadsTheOptionsOfAVariant) {
  KeyList list;
  Options(Inner{{7}}).visit(list);
  ASSERT_EQ(list.keys().size(), 1U);
  EXPECT_EQ(list.keys()[0].value, "[7]");
  KeyList none;
  Options().visit(none);
  EXPECT_TRUE(none.keys().empty());
}

}  // namespace
}  // namespace plumb
