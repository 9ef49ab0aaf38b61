// Answers that are made of those for other hosts, beside what the ssh program says about each.
#include "launcher/channels/ssh/config_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "launcher/channels/ssh/ssh_program.h"

namespace hvd {
namespace {

const std::vector<std::string> kNames = {"node1", "node2", "node3", "gpu1",    "gpu2",
                                         "login", "a.b.c", "Node1", "10.1.2.3"};

Result<std::string> RunSsh(const SshHost& host) {
  std::string command;
  for (const std::string& word : AskConfigCommand(host)) command += "'" + word + "' ";
  FILE* pipe = ::popen((command + "2>/dev/null </dev/null").c_str(), "r");
  std::string text;
  std::array<char, 4096> piece;
  while (size_t got = std::fread(piece.data(), 1, piece.size(), pipe))
    text.append(piece.data(), got);
  if (::pclose(pipe) != 0) return InvalidArgument("ssh -G failed");
  return text;
}

struct Config {
  const char* name;
  const char* text;
  size_t questions;  // of kNames, how many ssh is asked about
};

std::ostream& operator<<(std::ostream& out, const Config& config) { return out << config.name; }

class AnswersOfSsh : public ::testing::TestWithParam<Config> {
 protected:
  AnswersOfSsh() {
    std::string name = ::testing::TempDir() + "config_answers.XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "no folder";
    folder_ = name;
    std::ofstream(folder_ / "config") << GetParam().text;
  }
  ~AnswersOfSsh() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

TEST_P(AnswersOfSsh, AreTheSameWhoeverWasAsked) {
  if (std::system("ssh -V 2>/dev/null") != 0) GTEST_SKIP() << "there is no ssh program here";
  ConfigAnswers answers;
  size_t questions = 0;
  std::vector<std::function<void()>> later;  // all ask before the first answer is there
  auto ask = [&](const SshHost& host, ConfigAnswers::OnAnswer done) {
    ++questions;
    later.push_back([host, done = std::move(done)] { done(RunSsh(host)); });
  };
  size_t heard = 0;
  for (const std::string& name : kNames) {
    const SshHost host{.name = name, .config_file = (folder_ / "config").string()};
    answers.Get(host, ask, [&, host](const Result<std::string>& answer) {
      ++heard;
      const Result<std::string> own = RunSsh(host);
      ASSERT_EQ(answer.ok(), own.ok());
      if (!own.ok()) return;
      EXPECT_EQ(*answer, *own) << host.name;
    });
  }
  for (size_t i = 0; i < later.size(); ++i) later[i]();
  EXPECT_EQ(heard, kNames.size());
  EXPECT_EQ(questions, GetParam().questions);
}

TEST_P(AnswersOfSsh, AreAskedForOnceHoweverOftenAHostIsTried) {
  ConfigAnswers answers;
  std::map<std::string, int> questions;
  auto ask = [&](const SshHost& host, ConfigAnswers::OnAnswer done) {
    ++questions[host.name];
    done("host " + host.name + "\nhostname " + host.name + "\n");
  };
  size_t heard = 0;
  for (int time = 0; time < 3; ++time) {
    for (const std::string& name : kNames)
      answers.Get({.name = name, .config_file = (folder_ / "config").string()}, ask,
                  [&](const Result<std::string>&) { ++heard; });
  }
  EXPECT_EQ(heard, 3 * kNames.size());
  for (const auto& [name, times] : questions) EXPECT_EQ(times, 1) << name;
}

// "Node1" is asked about by itself always.
const Config kConfigs[] = {
    {"Empty", "", 2},
    {"OneBlock", "User bob\nHost *\n Port 2222\n IdentityFile ~/.ssh/%h\n", 2},
    {"Blocks", "Host node?\n User alice\nHost gpu* !gpu2\n Port 23\nHost *\n Compression yes\n", 4},
    {"Jump", "Host node*\n ProxyJump login\n", 3},
    {"OwnNames", "Host node*\n Hostname %h.example\n", 5},
    {"Addresses", "Host login\n HostName 10.9.9.9\n", 3},
    {"Match", "Match host node*\n User bob\n", 9},
    {"Broken", "Host *\n NoSuchKeyword yes\n", 2},
};

INSTANTIATE_TEST_SUITE_P(, AnswersOfSsh, ::testing::ValuesIn(kConfigs),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace hvd
