#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "configs/python_command.h"
#include "launcher/agent/inspection/find_command.h"
#include "launcher/job/host_records/command_trouble.h"

namespace hvd {
namespace {

const std::vector<std::string> kHosts = {"a", "b", "c"};

CommandFacts Python(const char* found, const char* real, const char* version) {
  return {"python", "/job", found, real, version, 0, 0};
}
CommandFacts Missing(int error) { return {"python", "/job", "", "", "", error, 0}; }

TEST(CommandFacts, KnowsWhatLooksLikePython) {
  for (const char* name : {"python", "python3", "/opt/bin/python3.11", "pypy3", "./python"})
    EXPECT_TRUE(LooksLikePython(name)) << name;
  for (const char* name : {"", "python3-config", "ipython", "train.py", "/opt/python/run"})
    EXPECT_FALSE(LooksLikePython(name)) << name;
}

TEST(CommandFacts, FindsTheVersionInTheNameOrInTheVirtualEnvironment) {
  struct Row {
    const char *real, *pyvenv, *version;
  };
  for (const Row& row : std::vector<Row>{
           {"/usr/bin/python3.11", "", "3.11"},
           {"/usr/bin/python3.11", "version = 3.9.2\n", "3.11"},
           {"/opt/conda/bin/python", "home = /opt\nversion = 3.9.2\n", "3.9"},
           {"/opt/conda/bin/python", "version_info = 3.12.1.final.0", "3.12"},
           {"/opt/bin/python3", "", ""},
           {"/opt/bin/python3", "version = \n", ""},
           {"", "version", ""},
           {"/opt/py3.8/bin/python", "", ""},
       }) {
    EXPECT_EQ(PythonVersion(row.real, row.pyvenv), row.version) << row.real << " " << row.pyvenv;
  }
}

TEST(CommandFacts, LooksWithoutRunning) {
  std::filesystem::path folder = testing::TempDir() + "venv";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder / "bin");
  std::filesystem::create_symlink("/bin/sh", folder / "bin/python");
  std::ofstream(folder / "pyvenv.cfg") << "version = 3.9.2\n";
  CommandFacts facts = LookForCommand("python", "/nowhere:" + (folder / "bin").string(), "/");
  EXPECT_EQ(facts.found, folder / "bin/python");
  EXPECT_EQ(facts.real, std::filesystem::canonical("/bin/sh"));
  EXPECT_EQ(facts.version, "3.9");
  EXPECT_EQ(facts.error, 0);
  EXPECT_EQ(LookForCommand("bin/python", "", folder).found, folder / "bin/python");
  EXPECT_EQ(LookForCommand("python", "/nowhere", "/").error, ENOENT);
  EXPECT_EQ(LookForCommand("python", "/nowhere", "/").directory_error, 0);
  EXPECT_EQ(LookForCommand("sh", "/bin", folder / "no").directory_error, ENOENT);
  EXPECT_EQ(LookForCommand("sh", "/bin", folder / "pyvenv.cfg").directory_error, ENOTDIR);
  std::filesystem::remove_all(folder);
}

TEST(CommandFacts, NamesTheHostsThatLackTheCommandAndWhatTheOthersHave) {
  CommandFacts python = Python("/usr/bin/python", "/usr/bin/python3.11", "3.11");
  EXPECT_FALSE(FindCommandTrouble(kHosts, {python, python, python}));
  EXPECT_FALSE(FindCommandTrouble(kHosts, {{}, {}, {}})) << "nobody looked";
  EXPECT_FALSE(FindCommandTrouble(kHosts, {Missing(ENOENT), Missing(ENOENT), Missing(ENOENT)}))
      << "the start says more";
  EXPECT_EQ(FindCommandTrouble(kHosts, {Missing(ENOENT), python, Missing(ENOENT)}),
            (CommandTrouble{127,
                            "the command 'python' cannot be started on every host: a, c: not "
                            "found; b has /usr/bin/python; install it there, or give a path that "
                            "leads to it on all hosts. Nothing was started"}));
  EXPECT_EQ(FindCommandTrouble(kHosts, {python, Missing(EACCES), python})->exit_code, 126);
  CommandFacts lost = python;
  lost.directory_error = ENOENT;
  EXPECT_EQ(FindCommandTrouble(kHosts, {python, lost, lost}),
            (CommandTrouble{126,
                            "the working directory /job cannot be entered on b, c: No such file "
                            "or directory; workers start where hvdrun was started: start it in a "
                            "directory that all hosts have, or make that one there. Nothing was "
                            "started"}));
}

TEST(CommandFacts, NamesThePythonsThatDiffer) {
  CommandFacts one = Python("/usr/bin/python", "/usr/bin/python3.11", "3.11");
  CommandFacts other = Python("/opt/bin/python", "/opt/bin/python", "");
  EXPECT_EQ(PythonsDiffer(kHosts, {one, one, one}), "");
  EXPECT_EQ(
      PythonsDiffer(kHosts, {one, other, one}),
      "'python' is not the same on all hosts: a, c have Python 3.11 at /usr/bin/python "
      "(/usr/bin/python3.11); b has one at /opt/bin/python; a path that is the same everywhere "
      "avoids surprises");
  CommandFacts tool = one, old = other;
  tool.program = old.program = "train";
  EXPECT_EQ(PythonsDiffer(kHosts, {tool, old, tool}), "") << "it is no Python";
}

}  // namespace
}  // namespace hvd
