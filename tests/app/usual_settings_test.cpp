// What plumb train sets where a configuration says nothing, by the task of the data.
#include <gtest/gtest.h>

#include "plumb/base/files.h"
#include "plumb/run/config.h"
#include "support/shared_folder.h"

namespace plumb {
namespace {

class UsualSettings : public test::SharedFolder<UsualSettings> {
 protected:
  static void SetUpTestSuite() {
    folder_.emplace();
    std::string text, labels;
    for (int i = 0; i < 60; ++i) {
      text += i % 2 == 0 ? "the cat saw the dog\n" : "a dog met a cat on the roof\n";
      labels += (i % 2 == 0 ? "praise\tit was good in " : "blame\tit was bad in ") + std::to_string(1900 + i) + '\n';
    }
    write_file_atomic(*folder_ / "text.txt", text);
    write_file_atomic(*folder_ / "labels.tsv", labels);
    const auto prepare = [](std::vector<std::string> words) {
      words.insert(words.end(), {"--vocabulary", "60", "-q"});
      test::succeeded(test::run_plumb(words, folder_->path()));
    };
    prepare({"data", "text", "--train", "text.txt", "--block", "16", "--mask-token", "--out", "text"});
    prepare({"data", "labels", "--train", "labels.tsv", "--out", "labels"});
    test::succeeded(test::run_plumb(
        {"data", "synthesize", "--pairs", "60", "--vocabulary", "200", "--out", "pairs", "-q"}, folder_->path()));
  }

  /// [train] of a run of a tiny model on these data.
  static RunConfig trained(const std::string& data, const std::vector<std::string>& keys) {
    static int number = 0;
    const std::string out = "run" + std::to_string(++number);
    test::succeeded(test::run_plumb(
        test::with_keys(
            test::with_keys({"train", "--data", data, "--out", out, "-q"},
                            {"model.d_model=8", "model.heads=2", "model.feed_forward=8", "model.encoder_layers=1",
                             "model.decoder_layers=1", "task.translation.beam=0"}),
            keys),
        folder_->path()));
    return read_run_config(Config::from_file(*folder_ / out / "config.toml"));
  }
};

TEST_F(UsualSettings, AreThoseOfTheTask) {
  const RunConfig text = trained("text", {});
  EXPECT_EQ(text.model.kind, "decoder");
  EXPECT_EQ(text.train.optimizer, "adamw");
  EXPECT_EQ(text.train.schedule, "constant * linear_warmup * cosine_decay");
  EXPECT_EQ(text.train.warm_up, Duration::parse("10%"));
  EXPECT_EQ(text.train.steps, Duration::parse("10e"));
  EXPECT_EQ(text.train.weight_decay, 0.1);
  EXPECT_EQ(text.train.label_smoothing, 0);

  const RunConfig masked = trained("text", {"model.kind=encoder", "train.steps=1"});
  EXPECT_EQ(masked.model.pooling, "none");
  EXPECT_EQ(masked.train.label_smoothing, 0);

  const RunConfig labels = trained("labels", {});
  EXPECT_EQ(labels.model.kind, "encoder");
  EXPECT_EQ(labels.train.steps, Duration::parse("20e"));
  EXPECT_EQ(labels.train.label_smoothing, 0.1);

  EXPECT_EQ(trained("pairs", {"train.steps=1"}).train, [] {
    TrainConfig unchanged;
    unchanged.steps = 1;
    return unchanged;
  }());
}

TEST_F(UsualSettings, GiveWayToWhatIsSet) {
  const RunConfig run =
      trained("text", {"train.steps=2", "train.optimizer=sgd", "train.warm_up=1", "train.label_smoothing=0.2"});
  EXPECT_EQ(run.train.steps, 2);
  EXPECT_EQ(run.train.weight_decay, 0);  // it depends on the optimizer
  EXPECT_EQ(run.train.warm_up, 1);
  EXPECT_EQ(run.train.label_smoothing, 0.2);
  EXPECT_EQ(trained("text", {"train.epochs=1"}).train.steps, TrainConfig().steps);
}

}  // namespace
}  // namespace plumb
