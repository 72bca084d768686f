#include "plumb/study/study.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/progress.h"
#include "plumb/base/toml_text.h"
#include "plumb/data/download.h"
#include "plumb/data/prepare.h"
#include "plumb/data/prepare_parts.h"
#include "plumb/data/prepare_synthetic.h"
#include "plumb/data/prepare_text.h"
#include "plumb/model/kind.h"
#include "plumb/report/answers.h"
#include "plumb/report/split_figure.h"
#include "plumb/study/changed_keys.h"
#include "plumb/study/forecast.h"
#include "plumb/study/plan.h"
#include "plumb/study/registration.h"
#include "plumb/study/transfer_data.h"

namespace plumb {
namespace {

/// Throws Error if a file of text is missing; the hint says how to get it, if the folder has the name of a public data
/// set.
void require_text(const std::vector<std::string>& files) {
  for (const std::filesystem::path file : files) {
    if (std::filesystem::exists(file)) continue;
    const std::string folder = file.parent_path().filename();
    const bool known = find_by(public_data_sets(), &PublicDataSet::name, folder) != nullptr;
    throw Error(fmt::format("{}: the study needs this file, which does not exist", file.string()),
                known
                    ? fmt::format("`plumb data get {} --out {}` downloads it, or name your own with --set data.train=…",
                                  folder, file.parent_path().string())
                    : "run it from the folder that the path is relative to, or set data.train");
  }
}

CorpusFiles corpus_files(const std::vector<std::string>& names, const char* key) {
  if (names.size() == 1) return {names[0], {}};
  if (names.size() == 2) return {names[0], names[1]};
  throw Error(fmt::format("data.{} lists {} files", key, names.size()),
              "list two files, source and target, or one TSV file");
}

/// Text for language models: the study's files, or the English side of the embedded corpus, with its last tenth held
/// out for validation.
void prepare_running_text(const StudyData& data, int64_t seed, bool mask, const std::filesystem::path& prepared) {
  TextOptions options;
  options.tokenizer.mask = mask;
  options.block = data.block;
  options.tokenizer.vocabulary = data.vocabulary;
  if (!data.train.empty()) {
    const auto single = [](const std::vector<std::string>& names, const char* key) {
      if (names.size() != 1) {
        throw Error(fmt::format("data.{} lists {} files", key, names.size()),
                    "with data.block, list one text file in one language");
      }
      return names.front();
    };
    options.train = single(data.train, "train");
    if (!data.valid.empty()) options.valid = single(data.valid, "valid");
    if (!data.test.empty()) options.tests.emplace_back("test", single(data.test, "test"));
    prepare_text(options, prepared);
    return;
  }
  options.valid_size = std::max<int64_t>(data.pairs / 10, 1);
  prepare_synthetic_text(data.pairs, static_cast<uint64_t>(seed), options, prepared);
}

/// Opens the study's data directory, or prepares out/data and records its origin in measurements/data.json. `mask`:
/// whether the vocabulary of running text has a mask token.
DataDirectory open_data(const StudyData& data, int64_t seed, bool mask, const std::filesystem::path& out) {
  if (!data.directory.empty()) return DataDirectory::open(data.directory);
  for (const auto* files : {&data.train, &data.valid, &data.test}) require_text(*files);
  const std::filesystem::path prepared = out / "data";
  const auto described = [](const std::vector<std::string>& files) {
    Json list = Json::array();
    for (const std::string& file : files) list.push_back(describe_file(file));
    return list;
  };
  Json wanted = {{"train", described(data.train)},
                 {"valid", described(data.valid)},
                 {"test", described(data.test)},
                 {"pairs", data.train.empty() ? data.pairs : 0},
                 {"vocabulary", data.vocabulary},
                 {"block", data.block},
                 {"seed", seed}};
  if (mask) wanted["mask"] = true;
  const std::filesystem::path note = out / "measurements" / "data.json";
  const auto settings = [](const Json& noted) { return noted.at("settings"); };
  if (std::filesystem::exists(prepared) && std::filesystem::exists(note) && take_json(note, settings) == wanted)
    return DataDirectory::open(prepared);
  say("preparing data");
  if (data.block > 0) {
    prepare_running_text(data, seed, mask, prepared);
  } else if (data.train.empty()) {
    SyntheticOptions options;
    options.pairs = data.pairs;
    options.tokenizer.vocabulary = data.vocabulary;
    options.seed = static_cast<uint64_t>(seed);
    prepare_synthetic(options, prepared);
  } else {
    PrepareOptions options;
    options.train = corpus_files(data.train, "train");
    if (!data.valid.empty()) options.valid = corpus_files(data.valid, "valid");
    if (!data.test.empty()) options.tests.emplace_back("test", corpus_files(data.test, "test"));
    options.tokenizer.vocabulary = data.vocabulary;
    options.seed = static_cast<uint64_t>(seed);
    prepare_data(options, prepared);
  }
  Json document = make_document("measurement", 1);
  document["name"] = "data";
  document["settings"] = wanted;
  write_json(note, document);
  return DataDirectory::open(prepared);
}

/// Identifies the data in the settings of a measurement.
Json data_settings(const DataDirectory& data, const StudyData& config) {
  Json info = data.info();
  info.erase("command");
  return {{"info", info}, {"split", config.measured_split}};
}

/// Identifies the batches that are measured: the data, and the task where it is not the default.
Json batch_settings(Json settings, const TaskConfig& task) {
  if (std::string own = changed_keys(task); !own.empty()) settings["task"] = std::move(own);
  return settings;
}

using DividedFigures = std::map<std::string, std::vector<Figure>>;  // by id before division

void add_part_results(Results& results, DividedFigures& figures, const PartResult& part, const std::string& name,
                      const std::vector<std::string>& schemes) {
  const auto add = [](auto& list, const auto& more) { list.insert(list.end(), more.begin(), more.end()); };
  for (Figure figure : part.figures) {
    figure.shorten_names();
    figures[figure.id] = split_by_scheme(figure, schemes);
    add(results.figures, figures[figure.id]);
  }
  add(results.summary, part.summary);
  add(results.tables, part.tables);
  if (!part.measurements.empty()) results.measurements[name] = part.measurements;
}

/// The report of a part, beginning with what its quantities are for each arm.
PartResult reported(const PartPlan& plan, const StudyContext& context) {
  PartResult result = plan.report();
  std::vector<std::string> sentences;
  for (const Quantity& quantity : plan.quantities()) sentences.push_back(answer_in_words(quantity, context.arms));
  result.summary.insert(result.summary.begin(), sentences.begin(), sentences.end());
  std::erase(result.summary, "");
  return result;
}

/// One thread per measurement for small models, whose operations are too short to parallelize; otherwise one
/// measurement at a time.
int64_t default_jobs(const StudyConfig& config) {
  constexpr int64_t kSmall = 128;
  return config.model.d_model <= kSmall ? omp_get_max_threads() : 1;
}

/// Adds the verdicts on claims of the study and of the literature, and sentences on the study's own.
void add_verdicts(Results& results, const DividedFigures& figures, const StudyContext& context,
                  const std::vector<SourcedClaim>& claims, const std::vector<Quantity>& quantities) {
  std::vector<std::string> axes;
  for (const auto& [axis, unused] : context.arms.front().axes) axes.push_back(axis);
  std::vector<StudyClaim> all;
  for (const SourcedClaim& each : claims) all.push_back(each.claim);
  results.verdicts = judge_claims(all, context.arms, quantities);
  const bool one_width = std::none_of(context.arms.begin(), context.arms.end(),
                                      [](const StudyArm& arm) { return arm.settings.contains("model.d_model"); });
  const std::string width = one_width ? fmt::format("d_model {}; ", context.config.model.d_model) : "";
  std::set<std::string> drawn;
  for (const StudyArm& arm : context.arms) drawn.insert(arm.model.initialization);
  for (size_t i = 0; i < claims.size(); ++i) {
    Verdict& verdict = results.verdicts[i];
    verdict.id = fmt::format("claim{}", i + 1);
    verdict.source = claims[i].source;
    if (verdict.setting.empty()) {
      verdict.setting = fmt::format("{} arms, by {}; {}initialization {}; {}", context.arms.size(), join(axes), width,
                                    join({drawn.begin(), drawn.end()}, " or "), corpus_of(context));
    }
    if (const auto found = figures.find(verdict.figure); found != figures.end())
      verdict.figure = part_with_scheme(found->second, verdict.scheme);
    if (claims[i].claim.source.empty()) results.summary.push_back(in_words(verdict));
  }
}

/// Throws Error on invalid values, schemes, models, optimizers and schedules, before anything is measured.
void check_study(const StudyContext& context) {
  const StudyConfig& config = context.config;
  require_split(context, config.data.measured_split);
  for (const std::string& arm : arm_names(context)) {
    const std::unique_ptr<Model> model = make_model(model_for(context, arm, 1));
    if (config.trains()) const Trainer trainer(*model, arm_named(context, arm).train, context.task);
  }
}

/// Whether an encoder predicts masked tokens, which requires a mask token in the vocabulary.
bool predicts_masked_tokens(const StudyConfig& config) {
  if (model_kind(config.model.kind).only_encodes() && config.model.pooling == "none") return true;
  const TransferStudy* transfer = config.part<TransferStudy>();
  return transfer != nullptr && std::any_of(transfer->models.begin(), transfer->models.end(),
                                            [](const auto& model) { return model_kind(model.kind).only_encodes(); });
}

/// A study in its directory, planned: what it measures is known, and what of that is stored.
class OpenedStudy {
 public:
  OpenedStudy(const StudyConfig& given, const std::filesystem::path& out, RunObserver on_point = {})
      : as_read_(given),
        config_(given),
        out_(out),
        on_point_(std::move(on_point)),
        measurements_(out / "measurements") {
    claim_output_directory(out, "study");
    toml_ = write_study(config_);
    write_file_atomic(out / "study.toml", toml_);
    data_.emplace(open_data(config_.data, config_.study.seed, predicts_masked_tokens(config_), out));
    task_ = make_task(config_.task, *data_, config_.model.kind);
    if (!task_->learned_by(config_.model.kind)) config_.model.kind = task_->model_kind();
    const Json of_data = data_settings(*data_, config_.data);
    const RunObserver one_at_a_time = [this](const std::filesystem::path& run, const TrainPoint& point) {
      const std::lock_guard lock(observing_);
      if (on_point_) on_point_(run, point);
    };
    context_.emplace(StudyContext{config_, config_.arms(), *data_, *task_, of_data,
                                  batch_settings(of_data, config_.task), out, measurements_, one_at_a_time});
    check_study(*context_);
    for (const std::string& name : study_part_names()) {
      if (config_.parts.count(name) == 0) continue;
      const auto& [part, plan] =
          plans_.emplace_back(name, study_parts().at(name).make.plan(*context_, config_.parts.at(name)));
      requests_.insert(requests_.end(), plan.requests().begin(), plan.requests().end());
      quantities_.insert(quantities_.end(), plan.quantities().begin(), plan.quantities().end());
    }
    for (const MeasurementRequest& request : requests_)
      if (measurements_.has(request)) made_.insert(request.name);
  }
  OpenedStudy(const OpenedStudy&) = delete;
  OpenedStudy& operator=(const OpenedStudy&) = delete;

  [[nodiscard]] std::vector<std::string> compared_in(const StudyClaim& claim) const {
    return compared_by(claim, context_->arms, quantities_);
  }

  void check(const StudyClaim& claim) const {
    check_claims({claim}, config_.trained_arms());
    if (claim.source.empty()) check_quantity(claim, context_->arms, quantities_);
  }

  /// Makes the measurements that are missing. `on_part` gets the results whenever a part but the last is complete.
  void measure(int64_t jobs, const std::function<void(const Json& results)>& on_part) {
    for (const SourcedClaim& each : sourced_claims(as_read_, out_)) check(each.claim);
    if (jobs <= 0) jobs = default_jobs(config_);
    if (const std::string ahead = forecast(*context_, plans_, jobs); !ahead.empty()) say(ahead);
    const int64_t reused = make_all(measurements_, requests_, jobs, [&](const MeasurementRequest& request) {
      const size_t before = unfinished().size();
      made_.insert(request.name);
      if (const size_t now = unfinished().size(); on_part && now > 0 && now < before) on_part(results().to_json());
    });
    say(fmt::format("{} measurements made, {} reused", measurements_.measured(), reused));
  }

  /// The results of the parts of which everything is measured, the claims of the literature about these, and the
  /// study's own if that is all of them.
  Results results() {
    Results results{config_.study.title, config_.study.subtitle};
    results.measurements = Json::object();
    results.settings = setting_groups(key_values(toml_));
    results.settings.push_back({"machine", {{"threads", std::to_string(omp_get_max_threads())}}});
    const std::vector<std::string> missing = unfinished();
    DividedFigures figures;
    std::vector<Quantity> quantities;  // of the finished parts
    for (const auto& [name, plan] : plans_) {
      if (contains(missing, name)) continue;
      add_part_results(results, figures, reported(plan, *context_), name, arm_names(*context_));
      quantities.insert(quantities.end(), plan.quantities().begin(), plan.quantities().end());
    }
    std::vector<SourcedClaim> claims = sourced_claims(as_read_, out_);
    std::erase_if(claims, [&](const SourcedClaim& each) {
      return each.claim.source.empty() ? !missing.empty() : !can_be_judged(each.claim, context_->arms, quantities);
    });
    const size_t of_parts = results.summary.size();
    add_verdicts(results, figures, *context_, claims, quantities);
    if (!missing.empty()) {
      const std::string so_far =
          fmt::format("{} of {} measurements are made; not reported yet: {}. The same `plumb study` command goes on.",
                      made(requests_), requests_.size(), join(missing));
      results.summary.insert(results.summary.begin(), so_far);
      return results;
    }
    for (const Table& table : comparison_tables(context_->arms, quantities)) results.tables.push_back(table);
    put_answers_first(results, results.summary.size() - of_parts);
    return results;
  }

 private:
  [[nodiscard]] int64_t made(const std::vector<MeasurementRequest>& requests) const {
    return std::count_if(requests.begin(), requests.end(),
                         [this](const MeasurementRequest& request) { return made_.contains(request.name); });
  }

  /// The parts of which measurements are missing.
  [[nodiscard]] std::vector<std::string> unfinished() const {
    std::vector<std::string> names;
    for (const auto& [name, plan] : plans_)
      if (made(plan.requests()) < std::ssize(plan.requests())) names.push_back(name);
    return names;
  }

  StudyConfig as_read_;  // as it was read
  StudyConfig config_;   // with the model's kind
  std::filesystem::path out_;
  RunObserver on_point_;
  Measurements measurements_;
  std::string toml_;
  std::optional<DataDirectory> data_;
  std::unique_ptr<Task> task_;
  std::mutex observing_;  // the points of runs that are trained concurrently come one by one
  std::optional<StudyContext> context_;
  PartPlans plans_;
  std::vector<MeasurementRequest> requests_;
  std::set<std::string> made_;  // the names of those that are stored
  std::vector<Quantity> quantities_;
};

}  // namespace

Json run_study(const StudyConfig& config, const std::filesystem::path& out, const RunObserver& on_point, int64_t jobs,
               const std::function<void(const Json& results)>& on_part) {
  OpenedStudy study(config, out, on_point);
  study.measure(jobs, on_part);
  Json results = study.results().to_json();
  write_json(out / "results.json", results);
  return results;
}

Json report_study(const std::filesystem::path& out) {
  const StudyConfig config = read_study(Config::from_file(out / "study.toml"));
  return OpenedStudy(config, out).results().to_json();
}

RegisteredClaims register_claims(const StudyConfig& config, const std::filesystem::path& out) {
  require_unregistered(config, out);
  const OpenedStudy study(config, out);
  RegisteredClaims registered;
  for (const StudyClaim& claim : config.study.claims) {
    study.check(claim);
    registered.judged_in.push_back(study.compared_in(claim));
  }
  registered.document = register_study(config, out);
  return registered;
}

}  // namespace plumb
