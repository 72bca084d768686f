// The program from the user's perspective: exit status, and what goes to standard output and standard error. Help is in
// help_test.cpp.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/base/json.h"
#include "plumb/base/text.h"
#include "plumb/ops/device.h"
#include "support/shared_folder.h"

namespace plumb {
namespace {

using test::Finished;
using test::run_plumb;
using test::TemporaryDirectory;

std::vector<std::string> with_tiny_model(const std::vector<std::string>& words, int layers) {
  return test::with_keys(
      words,
      {"model.d_model=8", "model.heads=2", "model.feed_forward=8", "model.encoder_layers=" + std::to_string(layers),
       "model.decoder_layers=" + std::to_string(layers), "model.source_vocabulary=16", "model.target_vocabulary=16"});
}

/// The result of `plumb probe` on a batch, with a tiny model and these keys.
Json probed(const std::string& batch, const std::vector<std::string>& keys, std::string* refusal = nullptr) {
  const TemporaryDirectory folder;
  write_file_atomic(folder / "batch.json", batch);
  std::vector<std::string> arguments =
      with_tiny_model({"probe", "--batch", "batch.json", "--seeds", "1", "--json", "-", "-q"}, 1);
  for (const std::string& key : keys) arguments.insert(arguments.end(), {"--set", "model." + key});
  const Finished finished = run_plumb(arguments, folder.path());
  if (refusal != nullptr) {
    *refusal = finished.errors;
  } else {
    EXPECT_EQ(finished.status, 0) << finished.errors;
  }
  return finished.status == 0 ? Json::parse(finished.output) : Json();
}

TEST(CommandLine, ProbesAModelThatIsGivenByKeysAlone) {
  const Json json = probed(R"({"source": [[5, 6, 7]], "target": [[8, 9]]})", {"residual=post-ln"});
  EXPECT_EQ(json["model"]["residual"], "post-ln");
  EXPECT_EQ(json["model"]["d_model"], 8);
  EXPECT_EQ(json["model"]["target_tokens"], 3);
  EXPECT_CONTAINS(run_plumb({"probe"}).errors, "no model given");
}

TEST(CommandLine, AModelThatDoesNotFitIntoMemoryIsAnErrorInWords) {
  std::string refusal;
  probed(R"({"source": [[5, 6, 7]], "target": [[8, 9]]})", {"d_model=1048576"}, &refusal);
  EXPECT_EQ(refusal, "plumb: error: out of memory\nhint: use a smaller model or smaller batches\n");
}

/// The document in a page that `plumb VERB --html` wrote, for a tiny model with the further options.
Json on_page(const std::string& verb, const std::vector<std::string>& options) {
  const TemporaryDirectory folder;
  write_file_atomic(folder / "batch.json", R"({"source": [[5, 6, 7], [9, 4]], "target": [[8, 9], [6, 5, 4]]})");
  const std::vector<std::string> words =
      with_tiny_model({verb, "--batch", "batch.json", "--html", "page.html", "--json", "result.json"}, 2);
  const Finished finished = test::succeeded(run_plumb(test::with(words, options), folder.path()));
  EXPECT_CONTAINS(finished.errors, "page.html");
  const std::string page = read_file(folder / "page.html"), open = "<script type=\"application/json\" id=\"results\">";
  const size_t begin = page.find(open) + open.size();
  Json document = Json::parse(page.substr(begin, page.find("</script", begin) - begin));
  document["result"] = Json::parse(read_file(folder / "result.json"));
  return document;
}

/// A figure of such a document, with its series by name.
std::map<std::string, Json> series_of(const Json& document, const std::string& figure) {
  std::map<std::string, Json> series;
  for (const Json& each : document["figures"]) {
    if (each["id"] != figure) continue;
    for (const Json& line : each["series"]) series[line["name"]] = line;
  }
  return series;
}

TEST(CommandLine, ThePageOfAProbeShowsItsNumbers) {
  const Json document = on_page("probe", {"--seeds", "2", "--gains", "--first-step", "--curvature", "4"});
  for (const Json& matrix : document["result"]["feed_forward"]) {
    const std::string stack = matrix["stack"], name = matrix["matrix"] == "W1" ? "W₁" : "W₂";
    const Json line = series_of(document, "gradient_by_layer_" + stack).at(name);
    const size_t place = matrix["layer"].get<size_t>() - 1;
    EXPECT_EQ(line["x"][place], matrix["layer"]);
    EXPECT_EQ(line["y"][place], matrix["batch_mean_gradient_norm"]["mean"]);
    EXPECT_EQ(line["high"][place], matrix["batch_mean_gradient_norm"]["high"]);
  }
  EXPECT_EQ(series_of(document, "signal").count("encoder"), 1);
  EXPECT_EQ(series_of(document, "backward_gain_decoder").at("cross-attention")["x"], (Json{1, 2}));
  EXPECT_EQ(series_of(document, "first_step_logits_adam").at("encoder")["x"], (Json{1, 2}));
  std::vector<std::string> tables;
  for (const Json& table : document["tables"]) tables.push_back(table["id"]);
  EXPECT_EQ(tables, (std::vector<std::string>{"whole", "layers", "slopes", "activations", "branches", "gains",
                                              "first_steps", "first_step_logits", "curvature_split"}));
  EXPECT_CONTAINS(document["summary"].dump(), "In the decoder, the gradient of W2");
}

TEST(CommandLine, ThePageOfASpectrumShowsItsNumbers) {
  const Json whole = on_page("spectrum", {"--steps", "6"});
  const Json line = series_of(whole, "hessian_density").at("Hessian");
  EXPECT_EQ(line["x"], whole["result"]["density"]["x"]);
  EXPECT_EQ(line["y"], whole["result"]["density"]["y"]);
  EXPECT_EQ(whole["tables"][0]["rows"][0][1], whole["result"]["max"]);
  const Json blocks = on_page("spectrum", {"--steps", "6", "--by-layer"});
  const std::map<std::string, Json> by_layer = series_of(blocks, "hessian_by_layer");
  EXPECT_EQ(by_layer.at("encoder")["x"], (Json{1, 2}));
  for (const Json& row : blocks["tables"][0]["rows"]) {
    if (row[0] != "decoder.layers.1") continue;
    EXPECT_EQ(by_layer.at("decoder")["y"][1], row[2]);
  }
}

TEST(CommandLine, ProbesADecoderThatClassifies) {
  // Each sequence has each label once, so that no model has a smaller loss than ln 3.
  const std::string labeled = R"({"tokens": [[5, 6, 7], [8, 9], [5, 6, 7], [8, 9], [5, 6, 7], [8, 9]],
                                  "labels": [0, 0, 1, 1, 2, 2]})";
  for (const std::string kind : {"decoder", "awd-lstm"}) {
    const Json json =
        probed(labeled, {"kind=" + kind, "labels=3", kind == "decoder" ? "pooling=last" : "pooling=concat",
                         "embedding_size=8", "hidden_size=8", "layers=1"});
    if (json.is_null()) continue;                          // has failed
    EXPECT_EQ(json["model"]["target_tokens"], 6) << kind;  // one label per sequence
    EXPECT_GE(json["loss"].get<double>(), std::log(3)) << kind;
    EXPECT_LE(json["loss"].get<double>(), std::log(3) + 1) << kind;
  }
  std::string refusal;
  probed(R"({"tokens": [[5, 6, 7]]})", {"kind=decoder", "labels=3", "pooling=last"}, &refusal);
  EXPECT_CONTAINS(refusal, "a model of kind \"decoder\" with labels cannot read this batch");
  probed(labeled, {"kind=decoder"}, &refusal);
  EXPECT_CONTAINS(refusal, "or with model.labels {\"tokens\", \"labels\"}");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they reserve address space themselves
// OpenBLAS would try forever to allocate its buffers.
TEST(CommandLine, TooLittleAddressSpaceIsAnErrorThatSaysHowMuchIsNeeded) {
  const auto limited = [](long mebibytes, const std::string& threads) {
    const std::string command = "ulimit -v " + std::to_string(mebibytes * 1024) + "; " + threads + " exec timeout 60 " +
                                test::plumb_program() + " man";  // --version needs no library
    return test::Process("sh", {"-c", command}).wait();
  };
  for (const std::string threads : {"", "OMP_NUM_THREADS=1"}) {
    const Finished finished = limited(300, threads);
    EXPECT_EQ(finished.status, 1);
    const std::string before = "the address space is limited to 300 MiB, but the libraries alone need about ";
    const size_t found = finished.errors.find(before);
    ASSERT_NE(found, std::string::npos) << finished.errors;
    const long needed = std::stol(finished.errors.substr(found + before.size()));
    EXPECT_CONTAINS(finished.errors, "hint: raise the limit (ulimit -v");
    for (const long limit : {needed - 1, needed - 100, needed - 200, 600L, 500L}) {
      const Finished small = limited(limit, threads);
      EXPECT_EQ(small.status, 1) << limit;
      EXPECT_CONTAINS(small.errors, "the address space is limited to") << limit << small.errors;
    }
    const Finished enough = test::succeeded(limited(needed, threads));
    EXPECT_CONTAINS(enough.output, "SYNOPSIS");
  }
}
#endif

/// All that is written to standard error.
std::string usage_error(const std::string& message, const std::string& hint) {
  return "plumb: error: " + message + "\nhint: " + hint + '\n';
}

/// Each is answered with status 2, nothing on standard output, and a message: this one, or one that contains it.
TEST(CommandLine, AWrongCommandLineHasStatusTwoAndAMessage) {
  struct Wrong {
    std::vector<std::string> words;
    std::string message = "plumb: error: ";
  };
  const TemporaryDirectory directory;
  write_file_atomic(directory / "m.toml", "[model]\nd_model = 16\n");
  const std::string of_train = "plumb train --help lists the options",
                    of_probe = "plumb probe --help lists the options";
  const auto set = [](const std::string& setting) {
    return std::vector<std::string>{"train", "--data", "none", "--out", "x", "--set", setting};
  };
  const auto on_data = [](std::vector<std::string> words) {
    words.insert(words.begin() + 1, {"--config", "m.toml", "--data", "d"});
    return words;
  };
  const std::vector<Wrong> all = {
      // what the parser detects
      {{"plum"}},
      {{"score"}},
      {{"score", "--no-such-option"}},
      {{"score", "--threads", "0", "file"}, "--threads must be greater than 0, not 0"},
      {{"plan", "x.toml", "--price", "-1"}, "--price must be 0 or greater, not -1"},
      {{"watch", "x", "--port", "0"}, "--port must be from 1 to 65,535, not 0"},
      {{"translate", "x", "--beam", "2000"}, "--beam must be from 1 to 1,000, not 2000"},
      {{"train", "--out", "x", "--seed", "99999999999999999999"}, "--seed"},
      {{"probe", "--data", "x", "--pairs", "ten"}, "plumb: error: --pairs must be a whole number, not 'ten'\nhint: "},
      {{"data", "text", "--train", "x", "--out", "y", "--tokenizer", "bp"},
       usage_error("--tokenizer must be one of bpe, unigram, word, not 'bp'", "did you mean 'bpe'?")},
      {{"data"}, usage_error("a command is missing", "plumb data --help lists the commands")},
      {{"train"}, usage_error("--out is required", of_train)},
      {{"-q", "train"}, usage_error("--out is required", of_train)},
      {{"data", "text", "--train", "t", "--out", "d", "--test", "a=b", "stray"},
       usage_error("unexpected: stray", "plumb data text --help lists the options")},
      {{"data", "text", "--train", "t"}, usage_error("--out is required", "plumb data text --help lists the options")},
      {{"probe", "a", "--", "b", "c"}, usage_error("unexpected: b c", of_probe)},
      {{"probe", "a", "b", "c"}, usage_error("unexpected: b c", of_probe)},
      // words like others
      {{"trian"}, usage_error("unknown command 'trian'", "did you mean 'train'?")},
      {{"hlep"}, usage_error("unknown command 'hlep'", "did you mean 'help'?")},
      {{"data", "prepar"}, usage_error("unknown command 'prepar' of plumb data", "did you mean 'prepare'?")},
      {{"train", "--oot", "run"},
       usage_error("unknown option '--oot'", "did you mean '--out'?")},  // before what is missing
      {{"generate", "run", "--max-token=3"},
       usage_error("unknown option '--max-token'", "did you mean '--max-tokens'?")},
      {{"data", "text", "--vocabluary", "9"},
       usage_error("unknown option '--vocabluary'", "did you mean '--vocabulary'?")},
      {{"train", "--qwertyuiop"}, usage_error("unknown option '--qwertyuiop'", "--help lists the options")},
      {{"help", "trian"}, usage_error("unknown command, key, variant or option 'trian'", "did you mean 'train'?")},
      {{"help", "learnign_rate"}, "did you mean 'learning_rate'?"},
      {{"help", "nonsense"}},
      {{"config", "trian"}, "did you mean 'train'?"},
      {{"train", "--out", "x", "--steps", "10"}, "it is a key: --set train.steps=…"},
      {{"train", "--out", "x", "--max-grad-norm", "1"}, "--set train.clip_norm=…"},
      {set("train.lr=1"), "did you mean 'learning_rate'?"},
      {set("train.optimizer=adamw2"), "did you mean 'adamw'?"},
      {set("model.n_head=2"), "did you mean 'heads'?"},
      {set("model.residual=dyt"), "--set model.residual=dyt: unknown "},
      {set("model.norm=instance"), "--set model.norm=instance: unknown "},
      // mistakes that only the verb detects
      {{"probe"}},
      {{"spectrum"}},
      {{"probe", "--config", "m.toml"}},
      {{"probe", "run", "--config", "m.toml"}},
      {on_data({"probe", "--set", "foo"})},
      {on_data({"probe", "--set", "model.foo=3"})},
      {on_data({"probe", "--set", "foo.bar=3"})},
      {on_data({"probe", "--set", "model.d_model=wide"})},
      {on_data({"probe", "--batch", "b"})},
      {on_data({"probe", "--seeds", "4611686018427387904"})},
      {on_data({"probe", "--label-smoothing", "nan"})},
      {on_data({"spectrum", "--sigma", "inf"})},
      {on_data({"spectrum", "--graph-memory", "nan"})},
      {{"plan", "m.toml", "--vocabulary", "300", "--efficiency", "nan"}},
      {{"plan", "m.toml", "--vocabulary", "300", "--batch-tokens", "1e300"}},
      {{"score", "m.toml", "--hypothesis", "m.toml", "--chrf-beta", "inf"}},
      {{"score", "m.toml", "--hypothesis", "m.toml", "--chrf-beta", "1e200"}},
      {{"score", "m.toml", "--hypothesis", "m.toml", "--confidence", "--samples", "9223372036854775807"}},
      {{"list", "foo"}},
      {{"study", "no_such_study", "--out", "s"}},
      {{"train", "--out", "r"}},
      {{"train", "--out", "r", "--set", "train.stepps=3"}},
      {{"data", "synthesize"}},
      {{"data", "synthesize", "--pairs", "0", "--raw", "x"}},
      {{"data", "prepare", "--train", "a", "b", "--test", "name=,", "--out", "d"}},
      {{"data", "prepare", "--train", "a", "b", "--corpus", "name=c,d", "--out", "d"}},
      {{"data", "prepare", "--corpus", "c,d", "--out", "d"}},
      {{"data", "prepare", "--out", "d"}},
      {{"data", "text", "--corpus", "c", "--out", "d"}},
      {{"data", "text", "--out", "d"}}};
  for (const Wrong& wrong : all) {
    SCOPED_TRACE(join(wrong.words, " "));
    const Finished finished = run_plumb(wrong.words, directory.path());
    EXPECT_EQ(finished.status, 2) << finished.errors;
    EXPECT_EQ(finished.output, "");
    EXPECT_CONTAINS(finished.errors, wrong.message);
    if (wrong.message.ends_with('\n')) {
      EXPECT_EQ(finished.errors, wrong.message);
    }
  }
  // A mistake in a file is not a usage error.
  write_file_atomic(directory / "wrong.toml", "[model]\nd_modl = 16\n");
  EXPECT_EQ(run_plumb({"probe", "--config", "wrong.toml", "--data", "d"}, directory.path()).status, 1);
}

TEST(CommandLine, AValueMayLookLikeAnOption) {
  for (const std::string prompt : {"--- Chapter 1", "--chapter", "-x"}) {
    const Finished finished = run_plumb({"generate", "nowhere", "--prompt", prompt});
    EXPECT_CONTAINS(finished.errors, "nowhere");
    EXPECT_LACKS(finished.errors, "option");
  }
}

// Standard output is redirected to a full device.
TEST(CommandLine, LostOutputIsAnError) {
  const TemporaryDirectory directory;
  write_file_atomic(directory / "text", "The cat sat on the mat .\n");
  for (const std::string verb : {"list", "list --markdown", "list --json -", "--help", "--version", "score --help",
                                 "score text --hypothesis text", "data synthesize --pairs 10 --raw x"}) {
    const Finished finished =
        test::Process("/bin/sh", {"-c", "'" + test::plumb_program() + "' " + verb + " > /dev/full"}, directory.path())
            .wait();
    EXPECT_EQ(finished.status, 1) << verb;
    EXPECT_EQ(finished.errors, "plumb: error: cannot write to standard output\n") << verb;
  }
}

TEST(CommandLine, AnUnwritableResultFileIsDetectedFirst) {
  const TemporaryDirectory directory;
  write_file_atomic(directory / "file", "x");
  for (const std::string wrong : {"file/result.json", "/proc/result.json", "."}) {
    const Finished finished =
        run_plumb({"data", "synthesize", "--pairs", "10", "--raw", "raw", "--json", wrong}, directory.path());
    EXPECT_EQ(finished.status, 1) << wrong;
    EXPECT_CONTAINS(finished.errors, wrong);
    EXPECT_FALSE(std::filesystem::exists(directory / "raw.de")) << wrong;
  }
}

TEST(CommandLine, JsonOfTheWrongStructureIsReportedPlainly) {
  const TemporaryDirectory directory;
  write_file_atomic(directory / "model.toml", "[model]\nd_model = 16\nsource_vocabulary = 9\ntarget_vocabulary = 9\n");
  for (const std::string batch : {R"({"source": [[1e400]], "target": [[5]]})", R"([])", R"({"batch": 3})",
                                  R"({"tokens": [[5, 6]], "labels": 3})"}) {
    write_file_atomic(directory / "batch.json", batch);
    const Finished finished = run_plumb({"probe", "--config", "model.toml", "--batch", "batch.json"}, directory.path());
    EXPECT_EQ(finished.status, 1) << batch;
    EXPECT_LACKS(finished.errors, "[json");
  }
}

TEST(CommandLine, ADeviceThatIsNotThereIsAnErrorBeforeAnythingElse) {
  const TemporaryDirectory directory;
  const std::string out = (directory / "run").string();
  for (const std::string device : {"tpu", "cuda:99", "cuda:x"}) {
    const Finished finished = run_plumb({"train", "--data", "nowhere", "--out", out, "--device", device});
    EXPECT_EQ(finished.status, 1) << device;
    EXPECT_EQ(finished.output, "");
    EXPECT_TRUE(finished.errors.starts_with("plumb: error: ")) << finished.errors;
    EXPECT_CONTAINS(finished.errors, "device '" + device + "'");
    EXPECT_CONTAINS(finished.errors, "\nhint: ");
  }
  EXPECT_FALSE(std::filesystem::exists(out));
  if (ops::available_devices().size() > 1) GTEST_SKIP() << "there is a GPU";
  const Finished finished = run_plumb({"list", "--device", "cuda"});
  EXPECT_EQ(finished.status, 1);
  EXPECT_CONTAINS(finished.errors, "there is no device 'cuda'");
}

TEST(CommandLine, TheDeviceIsTheCpuUnlessSaidOtherwise) {
  const std::vector<std::string> command = {
      "bench",        "decode", "--d-model",   "16", "--feed-forward", "32", "--heads", "2", "--layers", "1",
      "--vocabulary", "50",     "--sentences", "2",  "--length",       "4",  "--runs",  "1", "--json",   "-"};
  std::vector<std::string> told = command;
  told.insert(told.end(), {"--device", "cpu"});
  for (const auto& arguments : {command, told}) {
    const Finished finished = test::succeeded(run_plumb(arguments));
    EXPECT_EQ(Json::parse(finished.output)["device"], "cpu");
  }
}

TEST(CommandLine, AFailureHasStatusOneOneLineAndAHint) {
  const TemporaryDirectory directory;
  const std::string absent = (directory / "absent file").string();
  const Finished finished = run_plumb({"score", absent});
  EXPECT_EQ(finished.status, 1);
  EXPECT_EQ(finished.output, "");
  const std::vector<std::string> lines = split(finished.errors, '\n');
  ASSERT_EQ(lines.size(), 3U) << finished.errors;
  EXPECT_EQ(lines[0], "plumb: error: " + absent + ": cannot be read: No such file or directory");
  EXPECT_TRUE(lines[1].starts_with("hint: ")) << lines[1];
  EXPECT_EQ(lines[2], "");
}

TEST(CommandLine, SetTakesOneValueAndLeavesTheNextArgumentAlone) {
  const TemporaryDirectory directory;
  const std::string absent = (directory / "no-such-run").string();
  const Finished finished = run_plumb({"probe", "--set", "model.dropout=0", absent});
  EXPECT_EQ(finished.status, 1);
  EXPECT_CONTAINS(finished.errors, absent);
}

TEST(CommandLine, AResultGoesToTheFileThatJsonNames) {
  const TemporaryDirectory directory;
  write_file_atomic(directory / "text", "The cat sat on the mat .\n");
  const std::string text = (directory / "text").string();
  const std::string result = (directory / "score.json").string();
  const Finished finished = test::succeeded(run_plumb({"score", text, "--hypothesis", text, "--json", result}));
  EXPECT_EQ(finished.output, "");
  const Json score = read_json(result);
  EXPECT_EQ(score.at("schema"), "plumb.score/1");
  EXPECT_EQ(score.at("command"), "plumb score " + text + " --hypothesis " + text + " --json " + result);
  EXPECT_NEAR(score.at("bleu").get<double>(), 100.0, 1e-9);
}

}  // namespace
}  // namespace plumb
