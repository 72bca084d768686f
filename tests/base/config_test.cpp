#include "plumb/base/config.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "plumb/base/checksum.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "support/errors.h"
#include "support/paths.h"

namespace plumb {

struct Sample {
  int64_t layers = 6;
  double dropout = 0.1;
  bool tied = false;
  std::string residual = "post-ln";
  std::vector<int64_t> depths = {6, 12};
  std::vector<double> rates;
  std::vector<std::string> schemes;

  bool operator==(const Sample&) const = default;
};

// Found by argument-dependent lookup.
static void describe(Fields& fields, Sample& sample) {
  fields("layers", sample.layers);
  fields("dropout", sample.dropout);
  fields("tied", sample.tied);
  fields("residual", sample.residual);
  fields("depths", sample.depths);
  fields("rates", sample.rates);
  fields("schemes", sample.schemes);
}

namespace {

Sample read(const Config& config, const std::string& section = "model") {
  Sample sample;
  config.read(section, sample);
  return sample;
}

Sample read(std::string_view toml) { return read(Config::from_string(toml, "model.toml")); }

using test::error_of;

TEST(Config, ReadsEveryTypeAndKeepsWhatIsNotThere) {
  const Sample sample = read(R"(
    [model]
    layers = 12
    tied = true
    residual = "pre-ln"
    rates = [1, 0.5]
    schemes = ["a", "b"]
  )");
  EXPECT_EQ(sample.layers, 12);
  EXPECT_EQ(sample.dropout, 0.1);
  EXPECT_TRUE(sample.tied);
  EXPECT_EQ(sample.residual, "pre-ln");
  EXPECT_EQ(sample.depths, (std::vector<int64_t>{6, 12}));
  EXPECT_EQ(sample.rates, (std::vector<double>{1.0, 0.5}));
  EXPECT_EQ(sample.schemes, (std::vector<std::string>{"a", "b"}));
}

TEST(Config, TellsWhetherASectionIsPresent) {
  Sample sample;
  const Config config = Config::from_string("[model]\n", "model.toml");
  EXPECT_TRUE(config.read("model", sample));
  EXPECT_FALSE(config.read("data", sample));
  EXPECT_EQ(sample, Sample{});
}

TEST(Config, TakesAnIntegerForANumberAndOneValueForAList) {
  const Sample sample = read("[model]\ndropout = 1\ndepths = 3\n");
  EXPECT_EQ(sample.dropout, 1.0);
  EXPECT_EQ(sample.depths, std::vector<int64_t>{3});
}

TEST(Config, NamesPlaceAndNearestKeyOfAnUnknownOne) {
  const Error error = error_of([] { read("[model]\nlayers = 2\n  droput = 0.3\n"); });
  EXPECT_STREQ(error.what(), "model.toml:3:3: unknown key 'droput' in [model]");
  EXPECT_EQ(error.hint(), "did you mean 'dropout'?");
}

TEST(Config, KnowsNoSectionWithinASection) {
  const Error error = error_of([] { read("[model]\nlayers = 2\n[model.dropuot]\nlayers = 3\n"); });
  EXPECT_STREQ(error.what(), "model.toml:3:8: unknown section 'dropuot' in [model]");
}

TEST(Config, ListsTheKnownKeysWhenNoneIsNear) {
  const Error error = error_of([] { read("[model]\nzzzzzzzzzz = 2\n"); });
  EXPECT_EQ(error.hint(), "known keys: layers, dropout, tied, residual, depths, rates, schemes");
}

TEST(Config, NamesPlaceAndBothTypesOfAWrongOne) {
  const Error error = error_of([] { read("[model]\nlayers = 2.5\n"); });
  EXPECT_STREQ(error.what(), "model.toml:2:10: 'layers' must be a whole number, not 2.5");
  const Error in_list = error_of([] { read("[model]\ndepths = [1,\n  'two']\n"); });
  EXPECT_STREQ(in_list.what(), "model.toml:3:3: 'depths' must be a whole number, not 'two'");
  EXPECT_THROW(read("[model]\ntied = 1\n"), Error);
  EXPECT_THROW(read("[model]\nresidual = 1\n"), Error);
  EXPECT_THROW(read("[model]\ndropout = \"0.1\"\n"), Error);
}

TEST(Config, NamesPlacesAfterAssignments) {
  Config config = Config::from_string("[model]\nlayers = 2.5\n", "model.toml");
  config.set("model.tied=1");
  config.set("model.dropout=0.1");
  EXPECT_EQ(test::message_of([&] { read(config); }), "model.toml:2:10: 'layers' must be a whole number, not 2.5");
  config.set("model.layers=3");
  EXPECT_EQ(test::message_of([&] { read(config); }), "--set model.tied=1: 'tied' must be true or false, not 1");
}

TEST(Config, NamesThePlaceOfMalformedToml) {
  const Error error = error_of([] { Config::from_string("[model]\nlayers = = 2\n", "model.toml"); });
  EXPECT_TRUE(std::string(error.what()).starts_with("model.toml:2:10: ")) << error.what();
  EXPECT_THROW(Config::from_string("[model]\nlayers = 1\nlayers = 2\n", "model.toml"), Error);
}

TEST(Config, ReadsAFileAndReportsOneThatIsAbsent) {
  const test::TemporaryDirectory directory;
  write_file_atomic(directory / "model.toml", "[model]\nlayers = 3\n");
  EXPECT_EQ(read(Config::from_file(directory / "model.toml")).layers, 3);
  EXPECT_THROW(Config::from_file(directory / "absent.toml"), Error);
}

TEST(Config, LoadsNoLibraryByItself) {
  const test::TemporaryDirectory directory;
  ::setenv("XDG_CONFIG_HOME", directory.path().c_str(), 1);
  const Error error = error_of([] { Config::from_string("load = [\"missing.so\"]\n", "a.toml"); });
  EXPECT_EQ(std::string(error.what()), "a.toml:1:8: needs the library missing.so, whose code would run here");
  EXPECT_EQ(error.hint(),
            "if you trust it, add --load missing.so (in Python: libraries=[\"missing.so\"]); or, for every command: "
            "sha256sum missing.so >> " +
                (directory / "plumb" / "trusted-libraries").string());
  EXPECT_CONTAINS(test::message_of([] { Config::from_string("load = 3\n", "a.toml"); }), "'load' must be a string");
  const Config config = Config::from_string("load = [\"missing.so\"]\n", "a.toml", Libraries::ignored);
  EXPECT_EQ(config.libraries(), std::vector<std::string>{"missing.so"});
  EXPECT_EQ(ConfigWriter().plugins().text(), "");  // none is loaded
  ::unsetenv("XDG_CONFIG_HOME");
}

TEST(Config, LoadsALibraryThatTheUserTrusts) {
  const test::TemporaryDirectory directory;
  ::setenv("XDG_CONFIG_HOME", directory.path().c_str(), 1);
  const std::filesystem::path list = directory / "plumb" / "trusted-libraries";
  const std::string library = (directory / "lib.so").string(), toml = "load = [\"" + library + "\"]\n";
  const auto message = [&] { return test::message_of([&] { Config::from_string(toml, "a.toml"); }); };
  write_file_atomic(library, "no library");
  write_file_atomic(list, std::string(64, '0') + "  other.so\n");
  EXPECT_CONTAINS(message(), "needs the library");
  write_file_atomic(list, "\n" + digest_of(library).sha256 + "  anywhere.so\n");
  EXPECT_CONTAINS(message(), "too short");  // dlopen() was called
  write_file_atomic(library, "no library, changed");
  EXPECT_CONTAINS(message(), "needs the library");
  ::unsetenv("XDG_CONFIG_HOME");
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(Config, RefusesWhatNestsDeeply) {
  for (const std::string& toml : {repeated("a.", 40000) + "b = 1\n", "[" + repeated("a . ", 40000) + "b]\n",
                                  "[[" + repeated("\"a\".", 40000) + "b]]\n", "x = " + repeated("[", 40000),
                                  "x = " + repeated("{a = ", 40000), "x = {" + repeated("a.", 40000) + "b = 1}\n"}) {
    EXPECT_EQ(test::message_of([&] { Config::from_string(toml, "a.toml"); }), "a.toml: nested too deeply");
  }
  const std::string wide = "x = [" + repeated("0.5, ", 1000) + "]\ny = \"" + repeated("a.[{", 1000) + "\"\nz = '''" +
                           repeated("[\n", 1000) + "'''\n# " + repeated("a.[", 1000) + "\n" + repeated("a.", 60) +
                           "b = '\"'\n";
  EXPECT_NO_THROW(Config::from_string(wide, "a.toml"));
}

struct Mixed {
  std::vector<std::string> values;
};
static void describe(Fields& fields, Mixed& mixed) { fields("values", mixed.values, "", Domain().of_any_type()); }

TEST(Config, TakesValuesOfAnyTypeAsTheirText) {
  Mixed mixed;
  Config::from_string("[a]\nvalues = [\"rmsnorm\", 8, 0.5, true]\n", "a.toml").read("a", mixed);
  EXPECT_EQ(mixed.values, (std::vector<std::string>{"rmsnorm", "8", "0.5", "true"}));
}

TEST(Config, KnowsWhichKeysItHas) {
  const Config config = Config::from_string("[train]\nsteps = 3\n", "a.toml");
  EXPECT_TRUE(config.has("train.steps"));
  EXPECT_TRUE(config.has("train"));
  EXPECT_FALSE(config.has("train.epochs"));
  EXPECT_FALSE(config.has("model.norm"));
}

TEST(Config, RejectsASectionThatIsAValue) { EXPECT_THROW(read("model = 3\n"), Error); }

TEST(ConfigSet, OverridesAndAddsKeysAndSections) {
  Config config = Config::from_string("[model]\nlayers = 2\n", "model.toml");
  config.set("model.layers=4");
  config.set("model.residual=pre-ln");
  config.set("model.schemes=[\"a\", \"b\"]");
  config.set("other.tied=true");
  EXPECT_EQ(read(config).layers, 4);
  EXPECT_EQ(read(config).residual, "pre-ln");
  EXPECT_EQ(read(config).schemes.size(), 2U);
  EXPECT_TRUE(read(config, "other").tied);
}

TEST(ConfigSet, AValueMayHoldAnEqualsSign) {
  Config config;
  config.set("model.residual=a=b");
  EXPECT_EQ(read(config).residual, "a=b");
}

TEST(ConfigSet, AppliesToNestedSections) {
  Config config;
  config.set("train.model.layers=4");
  EXPECT_EQ(read(config, "train.model").layers, 4);
}

struct Named {
  std::string residual = "pre-ln";
  std::vector<std::string> norms;
  std::string file;
};
static void describe(Fields& field, Named& named) {
  field("residual", named.residual, "", one_of({"post-ln", "pre-ln", "residual-dual"}));
  field("norms", named.norms, "", one_of({"layernorm", "rmsnorm"}));
  field("file", named.file);
}

TEST(Config, UnderstandsNamesAsPapersWriteThem) {
  const Config config = Config::from_string(
      "[named]\nresidual = \"ResiDual\"\nnorms = [\"RMSNorm\", \"LayerNorm\"]\nfile = \"A-B\"\n", "x.toml");
  Named named;
  config.read("named", named);
  EXPECT_EQ(named.residual, "residual-dual");
  EXPECT_EQ(named.norms, (std::vector<std::string>{"rmsnorm", "layernorm"}));
  EXPECT_EQ(named.file, "A-B");
  Config other = Config::from_string("[named]\n", "x.toml");
  other.set("named.residual=Post-LN");
  other.read("named", named);
  EXPECT_EQ(named.residual, "post-ln");
  other.set("named.residual=post-lm");
  EXPECT_EQ(error_of([&] { other.read("named", named); }).hint(), "did you mean 'post-ln'?");
}

TEST(ConfigSet, NamesItselfInErrors) {
  Config config = Config::from_string("[model]\nlayers = 2\n", "model.toml");
  for (const char* malformed : {"layers=4", "model.layers", ".layers=4", "model.=4", "model.layers.x=4"}) {
    const Error error = error_of([&] { config.set(malformed); });
    EXPECT_TRUE(std::string(error.what()).starts_with(std::string("--set ") + malformed)) << error.what();
  }
  config.set("model.layer=4");
  const Error unknown = error_of([&] { read(config); });
  EXPECT_STREQ(unknown.what(), "--set model.layer=4: unknown key 'layer' in [model]");
  EXPECT_EQ(unknown.hint(), "did you mean 'layers'?");
  for (const char* ill_typed : {"model.layers=two", "model.layers=2.5"}) {
    Config file = Config::from_string("[model]\nlayers = 2\n", "model.toml");
    file.set(ill_typed);
    const Error error = error_of([&] { read(file); });
    EXPECT_TRUE(std::string(error.what()).starts_with(std::string("--set ") + ill_typed)) << error.what();
  }
}

TEST(ConfigSet, LeavesACopyAsItWas) {
  const Config original = Config::from_string("[model]\nlayers = 2\n", "model.toml");
  Config changed = original;
  changed.set("model.layers=4");
  EXPECT_EQ(read(original).layers, 2);
  EXPECT_EQ(read(changed).layers, 4);
}

TEST(Config, ReadsArraysOfTables) {
  const Config config = Config::from_string("[[run]]\nlayers = 1\n[[run]]\nlayers = 2\n", "study.toml");
  ASSERT_EQ(config.count("run"), 2U);
  EXPECT_EQ(config.count("model"), 0U);
  EXPECT_EQ(read(config, "run.0").layers, 1);
  EXPECT_EQ(read(config, "run.1").layers, 2);
}

TEST(Config, AllowsOnlyTheNamedSections) {
  const Config config = Config::from_string("[model]\n[trian]\n", "model.toml");
  EXPECT_NO_THROW(config.allow_only({"model", "trian"}));
  const Error error = error_of([&] { config.allow_only({"model", "train"}); });
  EXPECT_STREQ(error.what(), "model.toml:2:2: unknown section 'trian'");
  EXPECT_EQ(error.hint(), "did you mean 'train'?");
}

TEST(Config, RefusesNumbersThatAreNotFinite) {
  for (const char* value : {"nan", "inf", "-inf", "[0.1, nan]"}) {
    const std::string key = value[0] == '[' ? "rates" : "dropout";
    const Error error = error_of([&] { read("[model]\n" + key + " = " + value + "\n"); });
    EXPECT_CONTAINS(error.what(), "'" + key + "' must be a finite number, not ");
  }
}

TEST(ConfigSet, AMistakeIsOneOfUsage) {
  Config config = Config::from_string("[model]\nlayers = 2\n", "model.toml");
  EXPECT_THROW(config.set("foo"), UsageError);
  EXPECT_THROW(config.set("model.residual=\xFF"), UsageError);
  for (const char* wrong : {"model.layer=4", "model.layers=two", "model.dropout=nan"}) {
    Config changed = config;
    changed.set(wrong);
    EXPECT_THROW(read(changed), UsageError) << wrong;
  }
  try {
    read("[model]\nlayer = 2\n");  // from a file
    ADD_FAILURE();
  } catch (const UsageError&) {
    ADD_FAILURE();
  } catch (const Error&) {
  }
}

TEST(ConfigWriter, WritesEveryCharacter) {
  Sample sample;
  for (int c = 1; c < 128; ++c) sample.residual += static_cast<char>(c);
  sample.residual += std::string("\0", 1) + "ß😀";
  const Config config = Config::from_string(ConfigWriter().section("model", sample).text(), "written.toml");
  EXPECT_EQ(read(config), sample);
}

TEST(ConfigWriter, WritesWhatReadsBackEqual) {
  Sample sample;
  sample.layers = -3;
  sample.dropout = 1e-9;
  sample.residual = "a \"quoted\\\"\nword";
  sample.rates = {1, 0.1, 1e300, -5e-324};
  sample.schemes = {"x", ""};
  sample.depths = {};
  ConfigWriter writer;
  writer.section("model", sample).section("train.model", Sample{});
  const Config config = Config::from_string(writer.text(), "written.toml");
  EXPECT_EQ(read(config), sample);
  EXPECT_EQ(read(config, "train.model"), Sample{});
}

}  // namespace
}  // namespace plumb
