// The environment variables of launchers, as documented in their manuals.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "plumb/base/error.h"
#include "plumb/parallel/rendezvous.h"

namespace plumb {
namespace {

/// Environment variables that are set during a test only.
class Variables {
 public:
  explicit Variables(const std::map<std::string, std::string>& values) : values_(values) {
    for (const auto& [name, value] : values_) ::setenv(name.c_str(), value.c_str(), 1);
  }
  ~Variables() {
    for (const auto& [name, value] : values_) ::unsetenv(name.c_str());
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;

 private:
  std::map<std::string, std::string> values_;
};

TEST(Launcher, TorchrunServesAStoreOrLeavesThePortToRankZero) {
  std::map<std::string, std::string> values = {{"RANK", "1"},
                                               {"WORLD_SIZE", "2"},
                                               {"LOCAL_WORLD_SIZE", "1"},
                                               {"MASTER_ADDR", "node0"},
                                               {"MASTER_PORT", "29500"},
                                               {"TORCHELASTIC_RUN_ID", "job"},
                                               {"TORCHELASTIC_RESTART_COUNT", "0"},
                                               {"TORCHELASTIC_USE_AGENT_STORE", "False"}};
  const auto found = [&] {
    const Variables set(values);
    return rendezvous_of_environment().value();
  };
  EXPECT_EQ(found().port, 29500);
  EXPECT_EQ(found().local_size, 1);
  values["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  const Rendezvous first = found();
  EXPECT_EQ(first.port, 29501);
  EXPECT_FALSE(first.restarts);
  values["TORCHELASTIC_RESTART_COUNT"] = "1";  // the first attempt may still listen at the same port
  EXPECT_TRUE(found().restarts);
  EXPECT_EQ(found().port, 29501);
  EXPECT_NE(found().token, first.token);
  values["MASTER_PORT"] = "65535";  // none is after it
  EXPECT_THROW(found(), Error);
}

TEST(Launcher, SrunNamesTheFirstNode) {
  const Variables set({{"SLURM_JOB_ID", "4711"},
                       {"SLURM_STEP_ID", "0"},
                       {"SLURM_NTASKS", "8"},
                       {"SLURM_PROCID", "5"},
                       {"SLURM_JOB_NODELIST", "gpu[08-11,15],login"}});
  const Rendezvous found = rendezvous_of_environment().value();
  EXPECT_EQ(found.rank, 5);
  EXPECT_EQ(found.size, 8);
  EXPECT_EQ(found.host, "gpu08");
  EXPECT_TRUE(found.guessable);  // others see the job's ID
  EXPECT_EQ(found.local_size, 0);
  EXPECT_GE(found.port, 20000);
  EXPECT_LT(found.port, 32768);  // the start of Linux's ephemeral ports
  {
    const Variables more({{"SLURM_STEP_NUM_TASKS", "6"},
                          {"SLURM_STEP_NUM_NODES", "1"},
                          {"SLURM_STEP_NODELIST", "gpu11"},
                          {"MASTER_PORT", "1234"}});
    const Rendezvous step = rendezvous_of_environment().value();
    EXPECT_EQ(step.size, 6);
    EXPECT_EQ(step.local_size, 6);
    EXPECT_EQ(step.host, "gpu11");
    EXPECT_EQ(step.port, 1234);
  }
  {
    const Variables secret(std::map<std::string, std::string>{{"PLUMB_RUN_TOKEN", "secret"}});
    const Rendezvous closed = rendezvous_of_environment().value();
    EXPECT_EQ(closed.token, "secret");
    EXPECT_FALSE(closed.guessable);
    EXPECT_EQ(closed.port, found.port);  // no process may tell another port than the others
  }
  const Variables second(std::map<std::string, std::string>{{"SLURM_STEP_ID", "1"}});
  EXPECT_NE(rendezvous_of_environment()->port, found.port);  // concurrent steps of a job must not collide
}

TEST(Launcher, ABatchScriptIsNoTask) {
  const Variables set({{"SLURM_JOB_ID", "4711"}, {"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}});
  EXPECT_FALSE(rendezvous_of_environment());
}

TEST(Launcher, SlurmsListsOfNodes) {
  const std::map<std::string, std::string> first = {{"a", "a"},
                                                    {"a,b", "a"},
                                                    {"n[1-3]", "n1"},
                                                    {"n[003,5-9],m1", "n003"},
                                                    {"m1,n[1-3]", "m1"},
                                                    {"rack[2-3]node[07-08]", "rack2node07"},
                                                    {"n[1-2]-ib,n9", "n1-ib"}};
  for (const auto& [list, node] : first) EXPECT_EQ(first_node(list), node) << list;
  for (const char* wrong : {"", "n[", "n[]", "n[a-b]", ",n"}) EXPECT_THROW(first_node(wrong), Error) << wrong;
}

TEST(Launcher, MpirunNeedsTheMasterOnSeveralMachinesOnly) {
  std::map<std::string, std::string> values = {{"OMPI_COMM_WORLD_RANK", "3"},
                                               {"OMPI_COMM_WORLD_SIZE", "4"},
                                               {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                                               {"PMIX_NAMESPACE", "prterun-a@1"}};
  {
    const Variables set(values);
    const Rendezvous found = rendezvous_of_environment().value();
    EXPECT_EQ(found.rank, 3);
    EXPECT_EQ(found.size, 4);
    EXPECT_EQ(found.host, "127.0.0.1");
    EXPECT_EQ(found.token, "prterun-a@1");
  }
  values["OMPI_COMM_WORLD_LOCAL_SIZE"] = "2";
  {
    const Variables set(values);
    EXPECT_THROW(rendezvous_of_environment(), Error);
  }
  values["MASTER_ADDR"] = "node7";
  values["MASTER_PORT"] = "5000";
  const Variables set(values);
  const Rendezvous found = rendezvous_of_environment().value();
  EXPECT_EQ(found.host, "node7");
  EXPECT_EQ(found.port, 5000);
}

}  // namespace
}  // namespace plumb
