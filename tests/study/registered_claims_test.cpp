// A study that makes claims of its own, and registers them before it measures.
#include "plumb/study/registration.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "plumb/base/checksum.h"
#include "plumb/study/study.h"
#include "support/entries.h"
#include "support/errors.h"
#include "support/paths.h"

namespace plumb {
namespace {

constexpr const char* kClaiming = R"(
[study]
schemes = ["pre-ln"]
[[study.axis]]
key = "model.norm"
values = ["layernorm", "none"]
[[study.axis]]
key = "model.heads"
values = [1, 2]
[[study.claim]]
text = "without norms, the gradient grows more"
quantity = "gradient_growth"
of = ["model.norm=none"]
against = ["model.norm=layernorm"]
above = 1
[data]
pairs = 600
vocabulary = 200
[model]
d_model = 8
feed_forward = 12
[gradients]
layers = 3
seeds = 3
pairs = 5
)";

TEST(StudyClaims, OfAStudyAreRegisteredAndJudged) {
  const test::TemporaryDirectory folder;
  StudyConfig study = read_study(Config::from_string(kClaiming, "study.toml"));
  EXPECT_EQ(read_study(Config::from_string(write_study(study), "again")).study.claims, study.study.claims);
  const RegisteredClaims registration = register_claims(study, folder / "out");
  EXPECT_EQ(registration.document["study"], write_study(study));
  ASSERT_EQ(registration.judged_in.size(), 1U);
  EXPECT_EQ(registration.judged_in[0].size(), 2U);
  EXPECT_CONTAINS(registration.judged_in[0][0], " against ");
  EXPECT_CONTAINS(test::message_of([&] { register_claims(study, folder / "out"); }), "registered already");

  study.study.claims.push_back(study.study.claims.front());
  study.study.claims.back().text = "an afterthought";
  const Json results = run_study(study, folder / "out");
  const Json& registered = test::entry(results["verdicts"], "claim", "without norms, the gradient grows more");
  const std::string source = registered["source"];
  EXPECT_TRUE(source.starts_with("registered on 20")) << source;
  EXPECT_TRUE(source.ends_with(", before anything was measured; the study has been changed since")) << source;
  EXPECT_EQ(test::entry(results["verdicts"], "claim", "an afterthought")["source"],
            "claimed in this study, not registered");
  EXPECT_EQ(registered["effect"]["seeds"], 3);
  EXPECT_EQ(results["verdicts"][0], registered);
  EXPECT_NO_THROW(test::entry(results["figures"], "id", registered["figure"].get<std::string>()));
  EXPECT_TRUE(results["summary"][0].get<std::string>().starts_with("without norms, the gradient grows more: "))
      << results["summary"];
  // The same numbers as in the table of comparisons: the worse of the two pairs.
  double least = std::numeric_limits<double>::infinity();
  for (const Json& row : test::entry(results["tables"], "id", "comparisons")["rows"]) {
    if (row[1].get<std::string>().find("norm none") != std::string::npos &&
        row[2].get<std::string>().find("layernorm") == 0)
      least = std::min(least, row[4].get<double>());
  }
  EXPECT_TRUE(std::isfinite(least));
  EXPECT_NEAR(registered["effect"]["mean"].get<double>() / least, 1, 0.1);  // of ratios, arithmetic and geometric mean

  // A registration that is edited afterwards registers nothing.
  Json edited = registration.document;
  std::string text = edited["study"];
  text.replace(text.find("grows more"), 10, "grows less");
  edited["study"] = text;
  write_json(folder / "out" / "registration.json", edited);
  EXPECT_EQ(test::entry(report_study(folder / "out")["verdicts"], "claim",
                        "without norms, the gradient grows less")["source"],
            "not as registered: registration.json has been edited, so its SHA-256 is another");

  const test::TemporaryDirectory measured;
  run_study(study, measured / "out");
  EXPECT_CONTAINS(test::message_of([&] { register_claims(study, measured / "out"); }), "has been measured");
}

TEST(StudyClaims, AKeyThatPlumbGotLaterDoesNotChangeARegisteredStudy) {
  const test::TemporaryDirectory folder;
  const StudyConfig study = read_study(Config::from_string(kClaiming, "study.toml"));
  Json registration = register_claims(study, folder / "out").document;
  std::string text = registration["study"];
  const std::string later = "center_memory = false\n";
  text.erase(text.find(later), later.size());
  registration["study"] = text;
  registration["sha256"] = sha256(text);
  write_json(folder / "out" / "registration.json", registration);
  const std::string source = run_study(study, folder / "out")["verdicts"][0]["source"];
  EXPECT_TRUE(source.starts_with("registered on 20")) << source;
  EXPECT_TRUE(source.ends_with(", before anything was measured")) << source;
}

TEST(StudyClaims, ThatCannotBeJudgedAreNotRegistered) {
  const test::TemporaryDirectory folder;
  StudyConfig study = read_study(Config::from_string(kClaiming, "study.toml"));
  study.study.claims.front().quantity = "valid_loss";
  EXPECT_CONTAINS(test::message_of([&] { register_claims(study, folder / "out"); }), "valid_loss");
  EXPECT_FALSE(std::filesystem::exists(folder / "out" / "registration.json"));
}

TEST(StudyClaims, AStudyThatWasInterruptedHasAReport) {
  const test::TemporaryDirectory folder;
  StudyConfig study = read_study(Config::from_string(kClaiming, "study.toml"));
  const Json whole = run_study(study, folder / "out");
  EXPECT_EQ(report_study(folder / "out")["verdicts"], whole["verdicts"]);
  // Without one of the measurements, nothing is claimed, and nothing measured.
  size_t removed = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder / "out" / "measurements")) {
    if (removed == 0 && file.path().filename() != "data.json") removed += std::filesystem::remove(file.path()) ? 1 : 0;
  }
  ASSERT_EQ(removed, 1U);
  const Json partial = report_study(folder / "out");
  EXPECT_TRUE(partial["verdicts"].empty());
  EXPECT_CONTAINS(partial["summary"][0].get<std::string>(), "not reported yet: gradients") << partial["summary"];
}

}  // namespace
}  // namespace plumb
