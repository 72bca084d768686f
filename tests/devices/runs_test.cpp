// Training runs on another device: saved on one and loaded on another, and the traffic of a step with the host.
#include <gtest/gtest.h>

#include <filesystem>

#include "devices.h"
#include "plumb/io/safetensors.h"
#include "plumb/nn/attention/attention.h"
#include "plumb/ops/index.h"
#include "plumb/train/trainer.h"
#include "train/copy_task.h"

namespace plumb {
namespace {

using test::on;
using test::small_model;

class CopyRunsOnDevices : protected test::CopyTaskFolder {
 protected:
  CopyRunsOnDevices() {
    run_.model.dropout = 0.1;
    run_.train.clip_norm = 1;
  }
};

class RunsOnDevices : public test::OnEachDevice, protected CopyRunsOnDevices {};
INSTANTIATE_ON_DEVICES(RunsOnDevices);

TEST_P(RunsOnDevices, WhatOneSavesTheOtherLoads) {
  const auto made = [&](const at::Device& device, uint64_t seed) {
    const ops::DefaultDevice guard(device);
    std::unique_ptr<Model> model = make_model(small_model("encoder-decoder", 1), at::kDouble);
    model->initialize(seed);
    return model;
  };
  const auto there = made(GetParam(), 1), here = made(at::kCPU, 2);
  const auto file = folder_ / "model.safetensors";
  save_safetensors(file, named_values(there->parameters()));
  load_parameters(here->parameters(), load_safetensors(file), "file");
  EXPECT_TRUE(here->parameters().flat().equal(there->parameters().flat().cpu()));
  const auto again = made(GetParam(), 3);
  load_parameters(again->parameters(), load_safetensors(file), "file");
  EXPECT_EQ(again->parameters().flat().device(), GetParam());
  EXPECT_TRUE(here->parameters().flat().equal(again->parameters().flat().cpu()));
}

TEST_P(RunsOnDevices, TrainsARunTheSame) {
  run_.train.steps = 10;
  const auto trained = [&](const std::string& name, bool resumed) {
    const std::unique_ptr<Task> task = completed_task();
    const std::unique_ptr<Model> model = make_model(run_.model, at::kDouble);
    model->initialize(1);
    Trainer trainer(*model, run_.train, *task);
    const auto checkpoint = folder_ / name;
    if (resumed) trainer.load(checkpoint);
    test::Moments moments;
    std::filesystem::create_directories(checkpoint);
    if (!resumed) {
      moments.checkpoint = [&](const Trainer& at) {
        if (at.step() == 7) at.save(checkpoint);
      };
    }
    return trainer.run(moments);
  };
  const TrainResult expected = trained("here", false);
  const TrainResult found = on(GetParam(), [&] { return trained("there", false); });
  ASSERT_EQ(found.history.size(), expected.history.size());
  for (size_t i = 0; i < expected.history.size(); ++i) {
    EXPECT_NEAR(found.history[i].loss, expected.history[i].loss, 1e-7) << i;
    EXPECT_NEAR(*found.history[i].gradient_norm, *expected.history[i].gradient_norm, 1e-6) << i;
  }
  EXPECT_NEAR(*found.valid_nll(), *expected.valid_nll(), 1e-7);
  // A run started on one device can finish on another.
  const TrainResult moved = on(GetParam(), [&] { return trained("here", true); });
  EXPECT_NEAR(*moved.valid_nll(), *expected.valid_nll(), 1e-7);
}

class SimulatedDevice : public ::testing::Test, protected CopyRunsOnDevices {};

TEST_F(SimulatedDevice, AStepOfTrainingReadsItOnceAndABatchCrossesOnce) {
  const at::Device device = test::simulated_device();
  if (test::other_devices().front() != device) GTEST_SKIP() << "hide the GPU (CUDA_VISIBLE_DEVICES=) to simulate one";
  const ops::DefaultDevice guard(device);
  run_.train.validate_every = 1000;
  run_.train.steps = 8;
  const auto uploads_with = [&](const std::string& attention, int64_t layers) {
    run_.model.attention = attention;
    run_.model.encoder_layers = run_.model.decoder_layers = layers;
    const std::unique_ptr<Task> task = completed_task();
    const std::unique_ptr<Model> model = make_model(run_.model);
    model->initialize(1);
    Trainer trainer(*model, run_.train, *task);
    int64_t uploads = 0;
    // Evicts earlier uploads from the cache with other ids.
    for (int64_t i = 0; i < 300; ++i) (void)ops::index_beside(model->parameters().flat(), {i, layers});
    test::traffic().reads = 0;
    test::Moments moments;
    moments.stop = [&] {
      uploads = test::traffic().uploads;
      if (trainer.step() < run_.train.steps.in_steps()) {
        EXPECT_EQ(test::traffic().reads, trainer.step());
      }
      return trainer.step() == run_.train.steps.in_steps() - 1;
    };
    test::traffic().uploads = 0;
    trainer.run(moments);
    return uploads;
  };
  const int64_t shallow = uploads_with("softmax", 1);
  EXPECT_GT(shallow, 0);
  EXPECT_EQ(uploads_with("softmax", 3), shallow);  // layers share the batch's uploads
  for (const std::string& attention : attentions().names()) {
    SCOPED_TRACE(attention);
    uploads_with(attention, 1);
  }
}

}  // namespace
}  // namespace plumb
