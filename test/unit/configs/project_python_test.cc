#include "configs/project_python.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace hvd {
namespace {

// `uvx hvdrun` in /home/ann/digits/src, a folder of a project.
struct Machine {
  bool under_uv = true;
  std::string path = "/cache/tool/bin:/usr/bin";
  std::string virtual_env = "";
  std::string directory = "/home/ann/digits/src";
  std::set<std::string> files = {"/cache/tool/pyvenv.cfg", "/cache/tool/bin/python",
                                 "/home/ann/digits/.venv/bin/python", "/opt/env/bin/python"};
};

std::string On(const Machine& machine) {
  return ProjectBehindTool({machine.under_uv, "/cache/tool/bin", machine.path, machine.virtual_env,
                            machine.directory,
                            [&](const std::string& path) { return machine.files.contains(path); }});
}

TEST(ProjectPython, IsThatOfTheNearestFolderWithAnEnvironment) {
  EXPECT_EQ(On({}), "/home/ann/digits/.venv");
  EXPECT_EQ(On({.directory = "/home/ann/digits"}), "/home/ann/digits/.venv");
  EXPECT_EQ(On({.directory = "/home/ann"}), "");
  EXPECT_EQ(On({.directory = "/"}), "");
  Machine at_the_root = {.directory = "/srv"};
  at_the_root.files.insert("/.venv/bin/python");
  EXPECT_EQ(On(at_the_root), "/.venv");
}

TEST(ProjectPython, IsThatOfTheActiveEnvironmentBeforeAFolders) {
  EXPECT_EQ(On({.virtual_env = "/opt/env"}), "/opt/env");
  EXPECT_EQ(On({.virtual_env = "/opt/gone"}), "");
}

TEST(ProjectPython, ThePathIsTheUsersWhereUvDidNotPutHvdrunFirst) {
  EXPECT_EQ(On({.under_uv = false}), "") << "hvdrun's folder put there by hand";
  EXPECT_EQ(On({.path = "/usr/bin:/cache/tool/bin"}), "") << "uv tool install: a link to hvdrun";
  EXPECT_EQ(On({.path = "/tmp/overlay/bin:/cache/tool/bin"}), "") << "uv run --with hvdrun";
  EXPECT_EQ(On({.path = ""}), "");
  EXPECT_EQ(On({.virtual_env = "/cache/tool"}), "") << "uv run, with hvdrun in the project";
  Machine no_environment;
  no_environment.files.erase("/cache/tool/pyvenv.cfg");
  EXPECT_EQ(On(no_environment), "") << "a build tree";
}

}  // namespace
}  // namespace hvd
