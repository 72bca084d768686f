// Runs of several real processes, as launchers start them, on one machine and on two (network namespaces with their own
// addresses), and runs that lose a process.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <thread>

#include "copy_task.h"
#include "plumb/base/files.h"
#include "plumb/io/safetensors.h"
#include "plumb/run/directory.h"
#include "plumb/train/run_training.h"
#include "support/port.h"
#include "support/process.h"

namespace plumb {
namespace {

using test::Finished;
using test::Process;

/// Waits until `done` returns true; false after a minute.
bool comes_true(const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

class LaunchedRun : public ::testing::Test, protected test::CopyTaskFolder {
 protected:
  LaunchedRun() {
    run_.model.dropout = 0;
    run_.train.optimizer = "sgd";
    run_.train.learning_rate = 0.05;
    run_.train.score_every = -1;
    run_.train.steps = 12;
    run_.train.checkpoint_every = 4;
    run_.train.validate_every = 1000000;
  }

  /// Starts `plumb train` as one rank of two. `wrapped`: a command that runs it, such as `ip netns exec NAME`;
  /// `options`: further command-line options.
  [[nodiscard]] std::unique_ptr<Process> start(int64_t rank, const std::vector<std::string>& set = {},
                                               std::vector<std::string> wrapped = {},
                                               const std::vector<std::string>& options = {}) const {
    write_file_atomic(folder_ / "config.toml", to_toml(run_));
    std::vector<std::string> command = std::move(wrapped);
    for (const std::string& word :
         {std::string("env"), fmt::format("RANK={}", rank), std::string("WORLD_SIZE=2"), "MASTER_ADDR=" + master_,
          fmt::format("MASTER_PORT={}", port_), test::plumb_program(), std::string("train"), std::string("--threads"),
          std::string("1"), std::string("--quiet"), std::string("--config"), (folder_ / "config.toml").string(),
          std::string("--out"), out().string()}) {
      command.push_back(word);
    }
    for (const std::string& assignment : set) {
      command.emplace_back("--set");
      command.push_back(assignment);
    }
    command.insert(command.end(), options.begin(), options.end());
    const std::string program = command[0];
    command.erase(command.begin());
    return std::make_unique<Process>(program, command);
  }

  /// Makes the run long enough to be disturbed, and quick to notice lost processes.
  void make_long() {
    run_.train.steps = 1000000;
    run_.train.log_every = 1000;
    run_.train.timeout = 3;
  }
  [[nodiscard]] bool has_checkpoint() const { return std::filesystem::exists(out() / "checkpoints" / "step-000008"); }

  /// Resumes the run in one process for a few more steps. Throws Error if it cannot.
  [[nodiscard]] TrainResult resumed() const {
    RunConfig more = load_run_config(out());
    more.train.processes = more.train.tensor_parallel = more.train.pipeline_parallel = 1;
    return run_training(more, out(), test::stop_after(3));
  }

  [[nodiscard]] std::filesystem::path out() const { return folder_ / "run"; }

  /// The largest difference between the parameters of this run and of a run in one process.
  [[nodiscard]] double difference_from_one_process() const {
    static_cast<void>(run_training(run_, folder_ / "one"));
    const NamedTensors ours = load_safetensors(latest_checkpoint(out()) / "model.safetensors");
    const NamedTensors theirs = load_safetensors(latest_checkpoint(folder_ / "one") / "model.safetensors");
    double largest = ours.size() == theirs.size() ? 0 : 1e9;
    for (size_t i = 0; i < ours.size(); ++i)
      largest = std::max(largest, (ours[i].second - theirs[i].second).abs().max().item<double>());
    return largest;
  }

  std::string master_ = "127.0.0.1";
  int64_t port_ = test::unused_port();
};

// When started again, all ranks learn that there is nothing to do.
TEST_F(LaunchedRun, EqualsThatOfOneProcessAndEndsAgainInAllRanks) {
  for (int turn = 0; turn < 2; ++turn) {
    const auto zero = start(0), one = start(1);
    const Finished first = zero->wait(), second = one->wait();
    EXPECT_EQ(first.status, 0) << first.errors;
    EXPECT_EQ(second.status, 0) << second.errors;
  }
  EXPECT_LT(difference_from_one_process(), 1e-4);
}

TEST_F(LaunchedRun, WithDifferentConfigurationsIsAnErrorInAllRanks) {
  const auto zero = start(0), one = start(1, {"train.seed=7"});
  for (const Finished& finished : {zero->wait(), one->wait()}) {
    EXPECT_EQ(finished.status, 1);
    EXPECT_CONTAINS(finished.errors, "train.seed = 7 in rank 1 (process ");
  }
  EXPECT_FALSE(std::filesystem::exists(out()));
}

TEST_F(LaunchedRun, WithDifferentDataIsAnErrorInAllRanks) {
  PrepareOptions options;
  options.tokenizer.vocabulary = 24;
  prepare_corpora({test::copy_text(120, 1), test::copy_text(20, 7), {}}, options, folder_ / "other");
  const auto zero = start(0), one = start(1, {"data.directory=" + (folder_ / "other").string()});
  for (const Finished& finished : {zero->wait(), one->wait()}) {
    EXPECT_EQ(finished.status, 1);
    EXPECT_CONTAINS(finished.errors, "the checksum of the data's splits/valid.tokens = ");
  }
}

TEST_F(LaunchedRun, AnErrorOfOneRankBeforeTrainingReachesTheOther) {
  const auto zero = start(0), one = start(1, {"data.directory=/nowhere"});
  const Finished first = zero->wait();
  EXPECT_EQ(first.status, 1);
  EXPECT_CONTAINS(first.errors, "has failed: ");
  EXPECT_CONTAINS(first.errors, "/nowhere");
  EXPECT_EQ(one->wait().status, 1);
}

// A rank that cannot read its configuration or command line never joins the others.
TEST_F(LaunchedRun, AnErrorOfOneRankBeforeItJoinsReachesTheOther) {
  for (const int64_t wrong : {0, 1}) {
    port_ = test::unused_port();
    const auto failing = start(wrong, {"train.nosuch=1"}), other = start(1 - wrong);
    const Finished told = other->wait();
    EXPECT_EQ(told.status, 1);
    EXPECT_CONTAINS(told.errors, fmt::format("rank {} (process ", wrong));
    EXPECT_CONTAINS(told.errors, ") has failed: ");
    EXPECT_CONTAINS(told.errors, "nosuch");
    EXPECT_NE(failing->wait().status, 0);
  }
  port_ = test::unused_port();
  const auto failing = start(1, {}, {}, {"--nosuch"}), other = start(0);
  const Finished told = other->wait();
  EXPECT_EQ(told.status, 1);
  EXPECT_CONTAINS(told.errors, "--nosuch");
  EXPECT_EQ(failing->wait().status, 2);
  EXPECT_FALSE(std::filesystem::exists(out()));
}

TEST_F(LaunchedRun, WithoutAnyRankThatCanReadItsConfigurationEndsAtOnce) {
  const auto zero = start(0, {"train.nosuch=1"}), one = start(1, {"train.nosuch=1"});
  for (const Finished& finished : {zero->wait(), one->wait()}) {
    EXPECT_NE(finished.status, 0);
    EXPECT_CONTAINS(finished.errors, "nosuch");
  }
}

TEST_F(LaunchedRun, NamesAKilledProcessAndGoesOnWithoutIt) {
  make_long();
  const auto zero = start(0), one = start(1);
  ASSERT_TRUE(comes_true([this] { return has_checkpoint(); }));
  one->signal(SIGKILL);
  const Finished first = zero->wait();
  EXPECT_EQ(first.status, 1);
  EXPECT_CONTAINS(first.errors, "lost another process of this run: rank 1 (process ");
  EXPECT_CONTAINS(first.errors, ") has died");
  const TrainResult result = resumed();
  EXPECT_EQ(result.outcome, RunOutcome::stopped);
  EXPECT_GE(result.steps, 8 + 3);
}

TEST_F(LaunchedRun, NamesRankZeroIfThatIsKilled) {
  make_long();
  const auto zero = start(0), one = start(1);
  ASSERT_TRUE(comes_true([this] { return has_checkpoint(); }));
  zero->signal(SIGKILL);
  const Finished second = one->wait();
  EXPECT_EQ(second.status, 1);
  EXPECT_CONTAINS(second.errors, "lost another process of this run: rank 0 (process ");
  EXPECT_EQ(resumed().outcome, RunOutcome::stopped);
}

TEST_F(LaunchedRun, NamesAStoppedProcess) {
  make_long();
  for (const int64_t stopped : {0, 1}) {
    std::filesystem::remove_all(out());
    port_ = test::unused_port();
    const auto zero = start(0), one = start(1);
    ASSERT_TRUE(comes_true([this] { return has_checkpoint(); }));
    (stopped == 0 ? zero : one)->signal(SIGSTOP);
    const Finished other = (stopped == 0 ? one : zero)->wait();
    EXPECT_EQ(other.status, 1);
    EXPECT_CONTAINS(other.errors, fmt::format("rank {} (process ", stopped));
    EXPECT_CONTAINS(other.errors, "has sent no heartbeat for 3 s");
    // When it wakes up, it finds that the run has ended without it.
    (stopped == 0 ? zero : one)->signal(SIGCONT);
    const Finished late = (stopped == 0 ? zero : one)->wait();
    EXPECT_EQ(late.status, 1) << late.errors;
  }
}

// Ctrl-Z stops all processes of a job for any length of time, until `fg`.
TEST_F(LaunchedRun, GoesOnAfterAllWereStopped) {
  make_long();
  const auto zero = start(0), one = start(1);
  ASSERT_TRUE(comes_true([this] { return has_checkpoint(); }));
  for (const auto& each : {zero.get(), one.get()}) each->signal(SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(5));
  const auto before = latest_checkpoint(out());
  for (const auto& each : {zero.get(), one.get()}) each->signal(SIGCONT);
  EXPECT_TRUE(comes_true([&] { return latest_checkpoint(out()) != before; }));
  zero->signal(SIGTERM);
  const Finished first = zero->wait();
  EXPECT_EQ(first.status, 128 + SIGTERM) << first.errors;
  EXPECT_EQ(one->wait().status, 128 + SIGINT);  // interrupted, but not by its own signal
}

TEST_F(LaunchedRun, CanBeInterruptedWhileItWaitsForOthers) {
  const auto zero = start(0);
  // Once it listens, it waits for others.
  ASSERT_TRUE(comes_true([this] {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port_));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const bool listens = ::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    ::close(socket);
    return listens;
  }));
  zero->signal(SIGINT);
  EXPECT_EQ(zero->wait().status, 128 + SIGINT);
}

/// Two machines on one network: namespaces with one interface each.
class TwoMachines : public LaunchedRun {
 protected:
  TwoMachines() {
    const std::string id = std::to_string(::getpid());
    names_ = {"plumb-a-" + id, "plumb-b-" + id};
    const std::vector<std::vector<std::string>> commands = {
        {"netns", "add", names_[0]},
        {"netns", "add", names_[1]},
        {"link", "add", "pa" + id, "netns", names_[0], "type", "veth", "peer", "name", "pb" + id, "netns", names_[1]},
        {"-n", names_[0], "addr", "add", "10.98.0.1/24", "dev", "pa" + id},
        {"-n", names_[1], "addr", "add", "10.98.0.2/24", "dev", "pb" + id},
        {"-n", names_[0], "link", "set", "lo", "up"},
        {"-n", names_[1], "link", "set", "lo", "up"},
        {"-n", names_[0], "link", "set", "pa" + id, "up"},
        {"-n", names_[1], "link", "set", "pb" + id, "up"}};
    for (const auto& command : commands) {
      const Finished finished = Process("ip", command).wait();
      if (finished.status != 0 && why_not_.empty()) why_not_ = finished.errors.empty() ? "no `ip`" : finished.errors;
    }
    master_ = "10.98.0.1";
    interfaces_ = {"pa" + id, "pb" + id};
  }
  ~TwoMachines() override {
    for (const std::string& name : names_) static_cast<void>(Process("ip", {"netns", "delete", name}).wait());
  }
  void SetUp() override {
    if (!why_not_.empty()) GTEST_SKIP() << "network namespaces cannot be made here: " << why_not_;
  }

  [[nodiscard]] std::unique_ptr<Process> start_on(size_t machine, int64_t rank,
                                                  const std::vector<std::string>& variables = {}) const {
    std::vector<std::string> wrapped = {"ip", "netns", "exec", names_[machine], "env"};
    wrapped.insert(wrapped.end(), variables.begin(), variables.end());
    return start(rank, {}, wrapped);
  }

  std::vector<std::string> names_, interfaces_;
  std::string why_not_;
};

TEST_F(TwoMachines, TrainAsOneProcess) {
  const auto zero = start_on(0, 0), one = start_on(1, 1);
  const Finished first = zero->wait(), second = one->wait();
  EXPECT_EQ(first.status, 0) << first.errors;
  EXPECT_EQ(second.status, 0) << second.errors;
  EXPECT_LT(difference_from_one_process(), 1e-4);
}

// A run on one machine cannot be reached from others, nor a run on several at the loopback interface alone.
TEST_F(TwoMachines, ReachRankZeroOnlyIfTheyShouldJoin) {
  const auto reaches = [this](size_t machine, const std::string& address) {
    return Process("ip", {"netns", "exec", names_[machine], "bash", "-c",
                          fmt::format("exec 3<>/dev/tcp/{}/{}", address, port_)})
               .wait()
               .status == 0;
  };
  for (const bool alone : {true, false}) {
    master_ = alone ? "127.0.0.1" : "10.98.0.1";
    port_ = test::unused_port();
    const auto zero = start_on(0, 0);
    ASSERT_TRUE(comes_true([&] { return reaches(0, "127.0.0.1"); }));
    EXPECT_EQ(reaches(1, "10.98.0.1"), !alone);
    zero->signal(SIGINT);
    EXPECT_EQ(zero->wait().status, 128 + SIGINT);
  }
}

TEST_F(TwoMachines, TakeTheInterfacesTheyAreTold) {
  const auto zero = start_on(0, 0, {"GLOO_SOCKET_IFNAME=" + interfaces_[0]});
  const auto one = start_on(1, 1, {"GLOO_SOCKET_IFNAME=" + interfaces_[1]});
  const Finished first = zero->wait(), second = one->wait();
  EXPECT_EQ(first.status, 0) << first.errors;
  EXPECT_EQ(second.status, 0) << second.errors;
  std::filesystem::remove_all(out());
  const auto right = start_on(0, 0), wrong = start_on(1, 1, {"GLOO_SOCKET_IFNAME=nosuch0"});
  for (const Finished& finished : {right->wait(), wrong->wait()}) {
    EXPECT_EQ(finished.status, 1);
    EXPECT_CONTAINS(finished.errors, "no interface 'nosuch0'");
  }
}

TEST_F(TwoMachines, NoticeACutLink) {
  make_long();
  const auto zero = start_on(0, 0), one = start_on(1, 1);
  ASSERT_TRUE(comes_true([this] { return has_checkpoint(); }));
  ASSERT_EQ(Process("ip", {"-n", names_[1], "link", "set", interfaces_[1], "down"}).wait().status, 0);
  const Finished first = zero->wait(), second = one->wait();
  EXPECT_EQ(first.status, 1);
  EXPECT_CONTAINS(first.errors, "rank 1 (process ");
  EXPECT_CONTAINS(first.errors, "has sent no heartbeat for 3 s");
  EXPECT_EQ(second.status, 1);
  EXPECT_CONTAINS(second.errors, "rank 0 (process ");
  EXPECT_EQ(resumed().outcome, RunOutcome::stopped);
}

/// The command named by $PLUMB_TORCHRUN, or `torchrun`; empty if it cannot be run.
std::string find_torchrun() {
  const char* named = std::getenv("PLUMB_TORCHRUN");
  const std::string torchrun = named == nullptr ? "torchrun" : named;
  return Process(torchrun, {"--help"}).wait().status == 0 ? torchrun : std::string();
}

/// Tests of runs of two processes per machine that torchrun starts; skipped without it.
template <typename Machines>
class StartedByTorchrun : public Machines {
 protected:
  void SetUp() override {
    Machines::SetUp();
    if (this->IsSkipped()) return;
    torchrun_ = find_torchrun();
    if (torchrun_.empty()) GTEST_SKIP() << "torchrun is not installed; name it with PLUMB_TORCHRUN";
    write_file_atomic(this->folder_ / "config.toml", to_toml(this->run_));
  }
  /// `prefix`: a command that runs torchrun.
  [[nodiscard]] std::unique_ptr<Process> launch(std::vector<std::string> prefix,
                                                const std::vector<std::string>& options,
                                                const std::vector<std::string>& set = {}) const {
    std::vector<std::string>& command = prefix;
    command.push_back(torchrun_);
    command.insert(command.end(), options.begin(), options.end());
    for (const std::string& word :
         {std::string("--nproc-per-node=2"), std::string("--no-python"), test::plumb_program(), std::string("train"),
          std::string("--quiet"), std::string("--config"), (this->folder_ / "config.toml").string(),
          std::string("--out"), this->out().string()}) {
      command.push_back(word);
    }
    for (const std::string& assignment : set) {
      command.emplace_back("--set");
      command.push_back(assignment);
    }
    const std::string program = command.front();
    return std::make_unique<Process>(program, std::vector<std::string>(command.begin() + 1, command.end()));
  }

  std::string torchrun_;
};

class Torchrun : public StartedByTorchrun<LaunchedRun> {
 protected:
  void train(const std::vector<std::string>& options) const {
    const Finished finished = launch({}, options)->wait();
    EXPECT_EQ(finished.status, 0) << finished.errors;
    EXPECT_LT(difference_from_one_process(), 1e-4);
  }
};

TEST_F(Torchrun, StartsRanksByItsStaticRendezvous) { train({fmt::format("--master-port={}", port_)}); }
TEST_F(Torchrun, StartsRanksByItsOwnRendezvous) { train({"--standalone"}); }

class TorchrunOnTwoMachines : public StartedByTorchrun<TwoMachines> {
 protected:
  [[nodiscard]] std::unique_ptr<Process> launch_on(size_t machine, const std::vector<std::string>& set) const {
    return launch({"ip", "netns", "exec", names_[machine]},
                  {"--nnodes=2", fmt::format("--node-rank={}", machine), "--master-addr=" + master_,
                   fmt::format("--master-port={}", port_)},
                  set);
  }
};

// Four processes, of which those of a machine compute each layer together; the machines share the examples, or are the
// stages of a pipeline.
TEST_F(TorchrunOnTwoMachines, AMeshAcrossThemIsAsOneProcess) {
  for (const std::string stages : {"1", "2"}) {
    std::filesystem::remove_all(out());
    const std::vector<std::string> mesh = {"train.tensor_parallel=2", "train.pipeline_parallel=" + stages};
    const auto zero = launch_on(0, mesh), one = launch_on(1, mesh);
    const Finished first = zero->wait(), second = one->wait();
    EXPECT_EQ(first.status, 0) << first.errors;
    EXPECT_EQ(second.status, 0) << second.errors;
    std::filesystem::remove_all(folder_ / "one");
    EXPECT_LT(difference_from_one_process(), 1e-4);
  }
}

TEST_F(TorchrunOnTwoMachines, ACutLinkEndsAMeshOnBoth) {
  make_long();
  write_file_atomic(folder_ / "config.toml", to_toml(run_));
  const std::vector<std::string> mesh = {"train.tensor_parallel=2", "train.pipeline_parallel=2"};
  const auto zero = launch_on(0, mesh), one = launch_on(1, mesh);
  ASSERT_TRUE(comes_true([this] { return has_checkpoint(); }));
  ASSERT_EQ(Process("ip", {"-n", names_[1], "link", "set", interfaces_[1], "down"}).wait().status, 0);
  const Finished first = zero->wait();
  EXPECT_NE(first.status, 0);
  EXPECT_CONTAINS(first.errors, "has sent no heartbeat for 3 s");
  EXPECT_TRUE(comes_true([&] { return one->errors().find("rank 0 (process ") != std::string::npos; }));
  one->signal(SIGTERM);  // torchrun itself may wait for the other machine
  EXPECT_NE(one->wait().status, 0);
  EXPECT_EQ(resumed().outcome, RunOutcome::stopped);
}

}  // namespace
}  // namespace plumb
