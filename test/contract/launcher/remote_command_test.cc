// The command line for another host, given to real shells, and the bundle, given to a real tar.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <asio/io_context.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "launcher/channels/bundle/bundle.h"
#include "launcher/channels/bundle/bundle_source.h"
#include "launcher/channels/bundle/remote_script.h"
#include "launcher/channels/ssh_command.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

std::string OutputOf(const std::string& command) {
  FILE* pipe = ::popen(command.c_str(), "r");
  std::string text;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text += static_cast<char>(c);
  ::pclose(pipe);
  return text;
}

class Folder {
 public:
  Folder() {
    char path[] = "/tmp/hvd-remote-XXXXXX";
    path_ = ::mkdtemp(path);
  }
  ~Folder() { fs::remove_all(path_); }
  std::string Path(const std::string& name) const { return path_ + "/" + name; }
  // Executable.
  std::string Write(const std::string& name, const std::string& bytes) const {
    fs::create_directories(fs::path(Path(name)).parent_path());
    std::ofstream(Path(name), std::ios::binary) << bytes;
    fs::permissions(Path(name), fs::perms::owner_all);
    return Path(name);
  }

 private:
  std::string path_;
};

// Stands for a hvdrun of some build: it says which, and shows how it is called as the agent.
std::string StandIn(const std::string& build) {
  return "#!/bin/sh\ntest \"$2\" = --build && echo " + build + " && exit 0\necho \"$0 $*\"\n";
}

TEST(ShellWord, IsOneWordForAShellWhateverIsInIt) {
  for (const std::string word : {"plain", "two words", "it's", "$HOME `id` \\ \"", "a\nb", ""})
    EXPECT_EQ(OutputOf("printf %s " + ShellWord(word)), word);
}

TEST(RemoteAgentCommand, GreetsAndBecomesTheProgramAtOurPathInEveryLoginShell) {
  Folder folder;
  const std::string program = folder.Write("it's here/hvdrun", StandIn("1.0 beef"));
  RemoteAgent agent{program, "0123", "1.0", "beef", "here"};
  int shells = 0;
  for (const char* shell : {"sh", "bash", "dash", "zsh", "fish", "csh", "tcsh", "mksh", "ksh"}) {
    if (OutputOf(std::string("command -v ") + shell).empty()) continue;
    EXPECT_EQ(OutputOf(std::string(shell) + " -c " + ShellWord(RemoteAgentCommand(agent))),
              AgentGreeting("0123") + program + " agent --job 0123\n")
        << shell;
    ++shells;
  }
  EXPECT_GE(shells, 2);
}

TEST(RemoteAgentCommand, TakesThePathWhatIsOnPathOrWhatIsInTheCache) {
  Folder folder;
  RemoteAgent agent{folder.Path("none"), "7", "1.0", "beef", "here"};
  folder.Write("path/hvdrun", StandIn("1.0 beef"));
  folder.Write("cache/hvdrun/beef/bin/hvdrun", StandIn("1.0 beef"));
  auto output = [&](const std::string& path) {
    return OutputOf("PATH=" + path + "/bin:/usr/bin XDG_CACHE_HOME=" + folder.Path("cache") + " " +
                    RemoteAgentCommand(agent).substr(sizeof "exec"));
  };
  EXPECT_THAT(output(folder.Path("path:")), HasSubstr(folder.Path("path/hvdrun agent")));
  EXPECT_THAT(output(""), HasSubstr(folder.Path("cache/hvdrun/beef/bin/hvdrun agent")));
  EXPECT_TRUE(fs::exists(folder.Path("cache/hvdrun/beef/used")));
  fs::permissions(folder.Path("cache/hvdrun"), fs::perms::all);
  EXPECT_THAT(output(""), HasSubstr("cannot hvdrun is neither at"))
      << "anybody may have put it there";
}

// The command of a step is the same on all nodes.
TEST(RemoteAgentCommand, OfAStepBecomesTheAgentOfTheNodeItRunsOn) {
  Folder folder;
  RemoteAgent agent{folder.Write("hvdrun", StandIn("1.0 beef")), "", "1.0", "beef", "here"};
  agent.step = {{"n1", "a1"}, {"n12", "b2"}, {"n 3", "c3"}};
  const auto output = [&](const std::string& node) {
    return OutputOf("SLURMD_NODENAME='" + node + "' " + RemoteAgentCommand(agent).substr(5));
  };
  EXPECT_EQ(output("n12"), AgentGreeting("b2") + agent.executable + " agent --dial b2\n");
  EXPECT_EQ(output("n1"), AgentGreeting("a1") + agent.executable + " agent --dial a1\n");
  EXPECT_EQ(output("n 3"), AgentGreeting("c3") + agent.executable + " agent --dial c3\n");
}

// The names of the shells of this machine that a script for sh may meet.
std::vector<std::string> Shells() {
  std::vector<std::string> shells;
  for (const char* shell :
       {"sh", "dash", "bash", "busybox sh", "mksh", "ksh", "zsh --emulate sh"}) {
    const std::string program = std::string(shell).substr(0, std::string(shell).find(' '));
    if (!OutputOf("command -v " + program).empty()) shells.emplace_back(shell);
  }
  return shells;
}

// The fate of a hvdrun at this path, in each shell: "run", or why not.
std::string FateOf(const std::string& path, const std::string& search = "/bin:/usr/bin") {
  RemoteAgent agent{path, "7", "1.0", "beef", "here", BundleUse::kNever};
  std::string fate;
  for (const std::string& shell : Shells()) {
    const std::string command =
        shell + RemoteAgentCommand(agent).substr(std::string("exec sh").size());
    std::string output = OutputOf("PATH=" + search + " " + command + " 2>&1");
    if (output.ends_with(" agent --job 7\n")) {
      output = output.starts_with(AgentGreeting("7")) ? "run" : output;
    } else if (output.starts_with("hvdrun-agent 7 skips ")) {
      output = output.substr(output.find(", because ") + 10);
      output = output.substr(0, output.find('\n'));
    }
    EXPECT_TRUE(fate.empty() || fate == output) << shell << ": " << output;
    fate = output;
  }
  return fate;
}

TEST(RemoteAgentCommand, RunsWhatNobodyButTheUserAndRootCouldHavePutThere) {
  Folder folder;
  const std::string plain = folder.Write("plain/hvdrun", StandIn("1.0 beef"));
  EXPECT_EQ(FateOf(plain), "run");
  const std::string odd = folder.Write("a  b * [c] ' $d/hv -> run", StandIn("1.0 beef"));
  EXPECT_EQ(FateOf(odd), "run");
  fs::create_symlink("plain", folder.Path("link"));
  fs::create_symlink(folder.Path("link/../link"), folder.Path("second"));
  EXPECT_EQ(FateOf(folder.Path("second/./hvdrun")), "run");
  // Only its owner changes what lies in a folder like /tmp.
  const std::string shared = folder.Write("sticky/mine/hvdrun", StandIn("1.0 beef"));
  fs::permissions(folder.Path("sticky"), fs::perms::all | fs::perms::sticky_bit);
  EXPECT_EQ(FateOf(shared), "run");
}

TEST(RemoteAgentCommand, RunsNothingThatOthersMayWrite) {
  Folder folder;
  const std::string file = folder.Write("file/hvdrun", StandIn("1.0 beef"));
  fs::permissions(file, fs::perms::others_write, fs::perm_options::add);
  EXPECT_EQ(FateOf(file), "others may write to " + file);
  const std::string below = folder.Write("open/deep/er/hvdrun", StandIn("1.0 beef"));
  fs::permissions(folder.Path("open"), fs::perms::all);
  EXPECT_EQ(FateOf(below), "others may write to " + folder.Path("open"));
  EXPECT_EQ(FateOf("/none", folder.Path("open/deep/er") + ":/bin:/usr/bin"),
            "others may write to " + folder.Path("open"))
      << "also on PATH";
  folder.Write("plain/hvdrun", StandIn("1.0 beef"));
  fs::create_symlink(folder.Path("plain"), folder.Path("open/inner"));
  fs::create_symlink("open/inner", folder.Path("outer"));
  EXPECT_EQ(FateOf(folder.Path("outer/hvdrun")), "others may write to " + folder.Path("open"))
      << "a link in the middle could lead elsewhere in a moment";
}

TEST(RemoteAgentCommand, RunsNothingOfAStranger) {
  if (::getuid() != 0) GTEST_SKIP() << "it takes root to give a file away";
  constexpr uid_t kStranger = 12345;
  Folder folder;
  auto give = [](const std::string& path) { ::lchown(path.c_str(), kStranger, ::getgid()); };
  const std::string file = folder.Write("file/hvdrun", StandIn("1.0 beef"));
  give(file);
  EXPECT_EQ(FateOf(file), file + " belongs to user id 12345");
  const std::string below = folder.Write("folder/deeper/hvdrun", StandIn("1.0 beef"));
  give(folder.Path("folder"));
  EXPECT_EQ(FateOf(below), folder.Path("folder") + " belongs to user id 12345");
  folder.Write("plain/hvdrun", StandIn("1.0 beef"));
  const std::string link = folder.Path("link");
  fs::create_symlink("plain", link);
  give(link);
  EXPECT_EQ(FateOf(link + "/hvdrun"), link + " -> plain belongs to user id 12345");
}

// Where umask is 002, all that a user makes may be written by the group of the user's name.
TEST(RemoteAgentCommand, AGroupMayWriteIfItIsTheUsersAlone) {
  if (::getuid() != 0) GTEST_SKIP() << "it takes root to give a file to another group";
  Folder folder;
  const std::string file = folder.Write("g/hvdrun", StandIn("1.0 beef"));
  fs::permissions(file, fs::perms::group_write, fs::perm_options::add);
  ::chown(file.c_str(), 0, 100);
  EXPECT_EQ(FateOf(file), "the group with id 100 may write to " + file);
  ::chown(file.c_str(), 0, 0);
  // The commands that are asked for the group come from PATH.
  auto with_members = [&](const std::string& members, const std::string& name) {
    folder.Write("path/getent", "#!/bin/sh\necho \"$2:x:0:" + members + "\"\n");
    folder.Write("path/id", "#!/bin/sh\ncase $1 in -un) echo root;; -gn) echo " + name +
                                ";; *) echo 0;; esac\n");
    return FateOf(file, folder.Path("path") + ":/bin:/usr/bin");
  };
  const std::string refused = "the group with id 0 may write to " + file;
  EXPECT_EQ(with_members("", "root"), "run");
  EXPECT_EQ(with_members("root", "root"), "run");
  EXPECT_EQ(with_members("root,bob", "root"), refused);
  EXPECT_EQ(with_members("bob", "root"), refused);
  EXPECT_EQ(with_members("bob,root", "root"), refused);
  EXPECT_EQ(with_members("", "users"), refused) << "others may have it as their first group";
}

TEST(RemoteAgentCommand, SaysWhereItHasLookedAndWhatIsThere) {
  Folder folder;
  RemoteAgent agent{"/no/such/hvdrun", "1", "1.0", "beef", "here", BundleUse::kNever};
  auto output = [&] {
    return OutputOf("PATH=" + folder.Path("path") + ":/bin:/usr/bin " +
                    RemoteAgentCommand(agent).substr(sizeof "exec"));
  };
  EXPECT_THAT(output(), StartsWith("hvdrun-agent 1 cannot hvdrun is neither at /no/such/hvdrun nor "
                                   "on PATH; install hvdrun 1.0 there"));
  folder.Write("path/hvdrun", "#!/bin/sh\necho \"0.9 *\"\n");
  EXPECT_THAT(output(), HasSubstr("it has hvdrun 0.9 * (" + folder.Path("path/hvdrun") +
                                  ") and this is hvdrun 1.0;"));
  folder.Write("path/hvdrun", StandIn("1.0 other"));
  EXPECT_THAT(output(), StartsWith(AgentGreeting("1"))) << "the version will do";
}

// As hosts get it.
Result<SharedBundle> MakeBundle(const std::string& executable, Packing packing,
                                Duration limit = BundleSource::kLimit) {
  asio::io_context io;
  BundleSource source(io, executable, std::make_shared<LocalFamily>(), limit);
  Result<SharedBundle> made = Internal("nothing was made");
  int calls = 0;
  for (int i = 0; i < 2; ++i) {
    source.Get(packing, [&](const Result<SharedBundle>& bundle) {
      made = bundle;
      ++calls;
    });
  }
  io.run();
  EXPECT_EQ(calls, 2);
  return made;
}

// A PATH for this test alone.
class PathVariable {
 public:
  explicit PathVariable(const std::string& value) { ::setenv("PATH", value.c_str(), 1); }
  ~PathVariable() { ::setenv("PATH", before_.c_str(), 1); }

 private:
  std::string before_ = ::getenv("PATH");
};

TEST(Bundle, IsTheSameBuildWhereverItIsUnpacked) {
  Folder folder;
  Result<std::string> build = InstalledBuildId(HVDRUN_PATH);
  ASSERT_TRUE(build.ok()) << build.status().message();
  Result<SharedBundle> bundle = MakeBundle(HVDRUN_PATH, Packing::kGzip);
  ASSERT_TRUE(bundle.ok()) << bundle.status().message();
  folder.Write("b", (*bundle)->bytes);
  EXPECT_THAT(OutputOf("sha256sum " + folder.Path("b")), StartsWith((*bundle)->sha256 + " "));
  EXPECT_EQ(OutputOf("cd " + folder.Path("") + " && gzip -dc b | tar -xf - 2>&1"), "");
  Result<std::string> there = InstalledBuildId(folder.Path("bin/hvdrun"));
  ASSERT_TRUE(there.ok()) << there.status().message();
  EXPECT_EQ(*there, *build);
  EXPECT_EQ(OutputOf(folder.Path("bin/hvdrun") + " agent --build"),
            HVD_VERSION " " + *build + "\n");

  std::ofstream(folder.Path("lib/hvdrun/python/horovod/__init__.py"), std::ios::app) << "#";
  EXPECT_NE(*InstalledBuildId(folder.Path("bin/hvdrun")), *build) << "one byte more";
  fs::resize_file(folder.Path("lib/libhvd.so"), 100000);
  EXPECT_THAT(InstalledBuildId(folder.Path("bin/hvdrun")).status().message(), HasSubstr("cut off"));
  fs::remove_all(folder.Path("lib"));
  EXPECT_FALSE(InstalledBuildId(folder.Path("bin/hvdrun")).ok());
}

// The builds of the sanitizers keep everything in the programs.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t kMostBundleBytes = 1u << 30;
#else
constexpr size_t kMostBundleBytes = 36u << 20;
#endif

TEST(Bundle, DependsOnTheContentsOfItsFilesAlone) {
  Folder folder;
  const fs::path prefix = fs::path(HVDRUN_PATH).parent_path().parent_path();
  fs::create_directories(folder.Path("bin"));
  fs::copy(HVDRUN_PATH, folder.Path("bin/hvdrun"));
  fs::create_directories(folder.Path("lib/hvdrun/python"));
  for (const auto& entry : fs::directory_iterator(prefix / "lib")) {
    if (entry.path().extension() == ".so") fs::copy(entry, folder.Path("lib"));
  }
  fs::copy(fs::canonical(prefix / "lib/hvdrun/python/horovod"),
           folder.Path("lib/hvdrun/python/horovod"), fs::copy_options::recursive);
  // As pip lays a wheel out, in a path that shells and tar's expressions trip over.
  Folder environment;
  const std::string scripts = environment.Path("it's, a & venv/bin");
  const fs::path package =
      environment.Path("it's, a & venv/lib64/python3.12/site-packages/horovod");
  fs::create_directories(scripts);
  fs::copy(HVDRUN_PATH, scripts + "/hvdrun");
  fs::create_directories(package.parent_path());
  fs::copy(folder.Path("lib/hvdrun/python/horovod"), package, fs::copy_options::recursive);
  fs::create_directories(package / "lib/python/horovod");
  std::ofstream(package / "lib/python/horovod/__init__.py") << "# leads to the package\n";
  for (const auto& entry : fs::directory_iterator(folder.Path("lib"))) {
    if (entry.path().extension() == ".so") fs::copy(entry, package / "lib");
  }
  EXPECT_EQ(*InstalledBuildId(scripts + "/hvdrun"), *InstalledBuildId(HVDRUN_PATH));
  for (Packing packing : {Packing::kTar, Packing::kGzip}) {
    Result<SharedBundle> here = MakeBundle(HVDRUN_PATH, packing);
    Result<SharedBundle> copied = MakeBundle(folder.Path("bin/hvdrun"), packing);
    Result<SharedBundle> wheel = MakeBundle(scripts + "/hvdrun", packing);
    ASSERT_TRUE(here.ok() && copied.ok() && wheel.ok())
        << here.status().message() << copied.status().message() << wheel.status().message();
    EXPECT_EQ((*here)->sha256, (*copied)->sha256);
    EXPECT_EQ((*here)->sha256, (*wheel)->sha256);
    EXPECT_LT((*here)->bytes.size(), kMostBundleBytes)
        << "what debuggers read lies beside the programs";
  }
}

TEST(Bundle, SaysInOneSentenceWhyTarDoesNotMakeIt) {
  Folder folder;
  {
    PathVariable path(folder.Path("empty"));
    EXPECT_THAT(MakeBundle(HVDRUN_PATH, Packing::kTar).status().message(),
                MatchesRegex("tar cannot pack it here: the command 'tar' was not found in PATH .*; "
                             "install GNU tar and gzip here, or install hvdrun there"));
  }
  folder.Write("path/tar", "#!/bin/sh\necho 'tar: no such option' >&2\necho more >&2\nexit 64\n");
  PathVariable path(folder.Path("path") + ":/bin:/usr/bin");
  EXPECT_THAT(MakeBundle(HVDRUN_PATH, Packing::kTar).status().message(),
              StartsWith("tar cannot pack it here: tar: no such option; install"));
  folder.Write("path/tar", "#!/bin/sh\nexec sleep 600\n");
  EXPECT_THAT(
      MakeBundle(HVDRUN_PATH, Packing::kTar, std::chrono::milliseconds(100)).status().message(),
      StartsWith("tar cannot pack it here: it took longer than 0.1 s; install"));
}

}  // namespace
}  // namespace hvd
