// Which variables of PyTorch's flight recorder a worker gets, by its version.
#include "launcher/agent/environment/torch_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "launcher/agent/workers/torch_version.h"

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> NamesFor(TorchVersion version) {
  std::vector<std::string> names;
  for (const RecorderVariable& variable : RecorderVariables(version, "/t/0."))
    names.emplace_back(variable.name);
  return names;
}

TEST(TorchRecorder, TheVariablesAreThoseOfTheVersion) {
  EXPECT_THAT(NamesFor({1, 13}), IsEmpty());
  EXPECT_THAT(NamesFor({2, 4}), IsEmpty());
  for (const TorchVersion old : {TorchVersion{2, 5}, TorchVersion{2, 7}})
    EXPECT_THAT(NamesFor(old),
                ElementsAre("TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE",
                            "TORCH_NCCL_DUMP_ON_TIMEOUT", "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"));
  for (const TorchVersion own : {TorchVersion{2, 8}, TorchVersion{2, 15}, TorchVersion{3, 0}})
    EXPECT_THAT(NamesFor(own), ElementsAre("TORCH_FR_BUFFER_SIZE", "TORCH_FR_DUMP_TEMP_FILE",
                                           "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"));
}

TEST(TorchRecorder, TheVersionStandsInAFileOfPyTorch) {
  const std::string text =
      "from typing import Optional\n\n__all__ = ['__version__', 'debug']\n"
      "__version__ = '2.15.0+cpu'\ndebug = False\ngit_version = '0123'\n";
  EXPECT_EQ(ParseTorchVersion(text), (TorchVersion{2, 15}));
  EXPECT_EQ(ParseTorchVersion("__version__ = '1.13.1'\n"), (TorchVersion{1, 13}));
  for (const char* wrong : {"", "__version__", "__version__ = 'x'", "__version__ = '2'", "2.15"})
    EXPECT_EQ(ParseTorchVersion(wrong), std::nullopt) << wrong;
}

class FindTorchTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_ / "bin");
    Write("bin/python3", "x");
    Install("lib/python3.11/site-packages", "2.15.0");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
    std::filesystem::permissions(root_ / name, std::filesystem::perms::owner_all);
  }
  void Install(const std::string& packages, const std::string& version) const {
    Write(packages + "/torch/version.py", "__version__ = '" + version + "'\n");
  }
  std::optional<TorchVersion> Find(const std::string& program) const {
    return FindTorch({program, "train.py"}, (root_ / "bin").string(), root_.string());
  }

  const std::filesystem::path root_ = std::filesystem::path(testing::TempDir()) / "find_torch";
};

TEST_F(FindTorchTest, ByTheInterpreterOrTheScriptOfOne) {
  EXPECT_EQ(Find("python3"), (TorchVersion{2, 15}));
  EXPECT_EQ(Find("./bin/python3"), (TorchVersion{2, 15}));
  Write("bin/tool", "#!" + (root_ / "bin/python3").string() + " -E\nimport torch\n");
  EXPECT_EQ(Find("tool"), (TorchVersion{2, 15}));
  Write("bin/tool", "#!/usr/bin/env python3\nimport torch\n");
  EXPECT_EQ(Find("tool"), (TorchVersion{2, 15}));
}

TEST_F(FindTorchTest, NotThroughAWrapper) {
  Write("bin/uv", "x");
  EXPECT_EQ(Find("uv"), std::nullopt);
  Write("bin/uv", "#!/bin/sh\nexec python3\n");
  EXPECT_EQ(Find("uv"), std::nullopt);
  EXPECT_EQ(Find("absent"), std::nullopt);
}

TEST_F(FindTorchTest, NotWhereThereAreSeveral) {
  Install("lib/python3.12/site-packages", "2.6.0");
  EXPECT_EQ(Find("python3"), std::nullopt);
}

TEST_F(FindTorchTest, AVirtualEnvironmentBeforeItsOrigin) {
  const std::filesystem::path venv = root_ / "venv";
  std::filesystem::create_directories(venv / "bin");
  std::filesystem::create_symlink(root_ / "bin/python3", venv / "bin/python");
  EXPECT_EQ(Find("venv/bin/python"), (TorchVersion{2, 15})) << "with the packages of its origin";
  Install("venv/lib/python3.11/site-packages", "2.6.1");
  EXPECT_EQ(Find("venv/bin/python"), (TorchVersion{2, 6}));
}

}  // namespace
}  // namespace hvd
