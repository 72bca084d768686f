#include "plumb/base/domain.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plumb/base/config.h"
#include "plumb/base/error.h"
#include "plumb/base/key_list.h"
#include "plumb/base/registry.h"
#include "support/errors.h"

namespace plumb {
namespace {

struct Shares {
  double share = 0.5;
};
void describe(Fields& field, Shares& inner) { field("share", inner.share, "a share", below_one()); }

struct Sizes {
  int64_t layers = 2;
  std::string shape = "line";
  std::vector<int64_t> widths = {32, 64};
  Duration every = 50;
  double timeout = 60;
  Shares inner;
  std::vector<Shares> parts;
};
void describe(Fields& field, Sizes& outer) {
  field("layers", outer.layers, "layers of each stack", count_from(1));
  field("shape", outer.shape, "shape of the decay", one_of({"line", "root"}));
  field("widths", outer.widths, "widths", count_from(1).each_once());
  field("every", outer.every, "interval", count_from(0));
  field("timeout", outer.timeout, "time without a heartbeat", above(0).in("seconds"));
  field.section("inner", outer.inner);
  field.sections("part", outer.parts);
}

std::string refusal(const std::string& toml) {
  Sizes outer;
  return test::message_of([&] { Config::from_string("[outer]\n" + toml, "file.toml").read("outer", outer); });
}

TEST(Domain, AValueOutsideIsRefusedAtItsPlace) {
  EXPECT_EQ(refusal("layers = 0"), "file.toml:2:10: outer.layers = 0 must be at least 1");
  EXPECT_EQ(refusal("layers = 2_000_000_000"),
            "file.toml:2:10: outer.layers = 2000000000 must be at most 1,000,000,000");
  EXPECT_EQ(refusal("timeout = 0"), "file.toml:2:11: outer.timeout = 0 must be above 0");
  EXPECT_EQ(refusal("every = -1"), "file.toml:2:9: outer.every = -1 must be at least 0");
  EXPECT_EQ(refusal("every = \"2e\""), "accepted");
  EXPECT_EQ(refusal("shape = \"lime\""), "file.toml:2:9: outer.shape = \"lime\" must be \"line\" or \"root\"");
  EXPECT_EQ(refusal("widths = []"), "file.toml:2:10: outer.widths is empty");
  EXPECT_EQ(refusal("widths = [8, 0]"), "file.toml:2:10: outer.widths = 0 must be at least 1");
  EXPECT_EQ(refusal("widths = [8, 16, 8]"), "file.toml:2:10: outer.widths lists 8 twice");
  EXPECT_EQ(refusal("[outer.inner]\nshare = 1.0"), "file.toml:3:9: outer.inner.share = 1 must lie in [0, 1)");
  EXPECT_EQ(refusal("[[outer.part]]\nshare = 0.5\n[[outer.part]]\nshare = -0.5"),
            "file.toml:5:9: outer.part.share = -0.5 must lie in [0, 1)");
  EXPECT_EQ(refusal("layers = 1\nwidths = 8\ntimeout = 0.1\n[outer.inner]\nshare = 0"), "accepted");
}

TEST(Domain, AStructThatAProgramFilledIsCheckedAlike) {
  const auto complaint = [](const Sizes& outer) { return test::message_of([&] { require_valid("outer", outer); }); };
  EXPECT_EQ(complaint({}), "accepted");
  EXPECT_EQ(complaint({.layers = 0}), "outer.layers = 0 must be at least 1");
  EXPECT_EQ(complaint({.timeout = NAN}), "outer.timeout = nan must be finite");
  EXPECT_EQ(complaint({.inner = {1.5}}), "outer.inner.share = 1.5 must lie in [0, 1)");
  EXPECT_EQ(complaint({.parts = {{0.5}, {-1}}}), "outer.part.share = -1 must lie in [0, 1)");
}

TEST(Domain, IsPartOfTheDocumentation) {
  const auto keys = list_keys(Sizes{});
  ASSERT_EQ(keys.size(), 6U);
  EXPECT_EQ(in_words(keys[0].domain), "at least 1");
  EXPECT_EQ(in_words(keys[1].domain), "`line`, `root`");
  EXPECT_EQ(in_words(keys[4].domain), "above 0");
  EXPECT_EQ(keys[4].domain.unit, "seconds");
  EXPECT_EQ(keys[5].name, "inner.share");
  EXPECT_EQ(in_words(keys[5].domain), "in [0, 1)");
  EXPECT_EQ(keys[5].meaning, "a share");
}

TEST(Domain, NamesOfARegistryAreChoices) {
  Registry<int> colors("color");
  colors.add("red", "", "", 1);
  colors.add("blue", "", "", 2);
  const auto complaint = violation_of(name_in(colors), "paint.color", std::string("rad"));
  ASSERT_TRUE(complaint);
  EXPECT_EQ(complaint->message, "unknown color 'rad'");
  EXPECT_EQ(complaint->hint, "did you mean 'red'? known: blue, red");
  EXPECT_FALSE(violation_of(name_in(colors).or_value("none"), "paint.color", std::string("none")));
  EXPECT_FALSE(violation_of(name_in(colors).open_choices(), "paint.color", std::string("red * blue")));
  EXPECT_FALSE(violation_of(name_in(colors).open_choices("*"), "paint.color", std::string("red * blue")));
  EXPECT_TRUE(violation_of(name_in(colors).open_choices("*"), "paint.color", std::string("rad")));
}

TEST(Domain, AnEpsilonIsAFloatAboveZero) {
  EXPECT_TRUE(violation_of(epsilon(), "eps", 0.0));
  EXPECT_TRUE(violation_of(epsilon(), "eps", 1e-40));
  EXPECT_FALSE(violation_of(epsilon(), "eps", 1e-8));
}

}  // namespace
}  // namespace plumb
