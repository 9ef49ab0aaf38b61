#include "configs/python_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace hvd {
namespace {

using Words = std::vector<std::string>;
using testing::ElementsAre;
using testing::HasSubstr;

struct Machine {
  std::set<std::string> on_path = {"python", "python3"};
  std::set<std::string> files = {"train.py", "sub/train.py"};
  std::set<std::string> executable = {};
};

PythonCommand On(const Machine& machine, const Words& command, bool module = false) {
  return WithPython(command, module,
                    {[&](const std::string& name) { return machine.on_path.contains(name); },
                     [&](const std::string& path) { return machine.files.contains(path); },
                     [&](const std::string& path) { return machine.executable.contains(path); }});
}

TEST(PythonCommand, AScriptIsStartedByThePythonOfTheEnvironmentAndANoteSaysSo) {
  const PythonCommand plain = On({}, {"train.py", "--lr", "1"});
  EXPECT_THAT(plain.command, ElementsAre("python", "train.py", "--lr", "1"));
  EXPECT_EQ(plain.note, "train.py is started as python train.py");
  EXPECT_THAT(On({.on_path = {"python3"}}, {"sub/train.py"}).command,
              ElementsAre("python3", "sub/train.py"));
}

TEST(PythonCommand, AScriptThatRunsByItselfIsLeftAlone) {
  const Machine machine{.executable = {"train.py", "sub/train.py"}};
  EXPECT_THAT(On(machine, {"sub/train.py"}).command, ElementsAre("sub/train.py"));
  const PythonCommand here = On(machine, {"train.py"});
  EXPECT_THAT(here.command, ElementsAre("./train.py"));
  EXPECT_EQ(here.note, "");
}

TEST(PythonCommand, OtherCommandsAreAsTheyWere) {
  EXPECT_THAT(On({}, {"python", "train.py"}).command, ElementsAre("python", "train.py"));
  EXPECT_THAT(On({}, {"missing.py"}).command, ElementsAre("missing.py"));
  EXPECT_THAT(On({.on_path = {"python", "train.py"}}, {"train.py"}).command,
              ElementsAre("train.py"));
  EXPECT_THAT(On({.files = {"train.sh"}}, {"train.sh"}).command, ElementsAre("train.sh"));
}

TEST(PythonCommand, AModuleIsStartedWithM) {
  const PythonCommand module = On({}, {"pkg.train", "-m"}, true);
  EXPECT_THAT(module.command, ElementsAre("python", "-m", "pkg.train", "-m"));
  EXPECT_EQ(module.note, "");
}

}  // namespace
}  // namespace hvd
