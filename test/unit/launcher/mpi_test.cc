// mpirun for hvdrun --mpi: which MPI it is, its command, and the meaning of its end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/external/mpi/launcher_run.h"
#include "launcher/external/mpi/mpi_command.h"
#include "launcher/external/mpi/mpi_flavor.h"

namespace hvd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The words of each mpirun about itself, as recorded; the last five by its manuals.
TEST(MpiFlavor, IsToldByTheWordsOfItsMpirun) {
  struct Case {
    const char* said;
    MpiFlavor flavor;
    int major;
    const char* name;
  };
  for (const Case& c : {
           Case{"mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/",
                MpiFlavor::kOpenMpi, 4, "Open MPI 4.1.4"},
           Case{"HYDRA build details:\n    Version:                                 4.0.2\n"
                "    Release Date:                            Thu Apr  7 12:34:45 CDT 2022\n",
                MpiFlavor::kMpich, 4, "MPICH 4.0.2"},
           Case{
               "mpirun (Open MPI) 5.0.3\n\nReport bugs to https://www.open-mpi.org/community/help/",
               MpiFlavor::kOpenMpi, 5, "Open MPI 5.0.3"},
           Case{"mpirun (OpenRTE) 2.1.1\n", MpiFlavor::kOpenMpi, 2, "Open MPI 2.1.1"},
           Case{"mpirun (IBM Spectrum MPI) 10.4.0.3\n", MpiFlavor::kSpectrum, 10,
                "Spectrum MPI 10.4.0.3"},
           Case{"Intel(R) MPI Library for Linux* OS, Version 2021.11 Build 20231005 (id: 74c4a23)\n"
                "Copyright 2003-2023, Intel Corporation.\n",
                MpiFlavor::kIntel, 2021, "Intel MPI 2021.11"},
           Case{"MPICH", MpiFlavor::kMpich, 0, "MPICH"},
       }) {
    const std::optional<MpiVersion> version = ReadMpiVersion(c.said);
    ASSERT_TRUE(version) << c.said;
    EXPECT_EQ(version->flavor, c.flavor) << c.said;
    EXPECT_EQ(version->major, c.major) << c.said;
    EXPECT_EQ(version->name, c.name);
  }
  EXPECT_FALSE(ReadMpiVersion(""));
  EXPECT_FALSE(ReadMpiVersion("srun 22.05"));
}

TEST(MpiFlavor, NamesTheArgumentThatIsNotKnown) {
  EXPECT_EQ(UnknownArgument("mpirun: Error: unknown option \"-foo\"\nType 'mpirun --help'"),
            "-foo");
  EXPECT_EQ(UnknownArgument("[mpiexec@a] match_arg (utils/args/args.c:163): unrecognized argument "
                            "foo\n[mpiexec@a] HYDU_parse_array"),
            "-foo");
  EXPECT_EQ(UnknownArgument("mpirun (Open MPI) 4.1.4\n"), "");
  EXPECT_EQ(UnknownArgument("unknown option \""), "-");
}

class MpiCommandTest : public testing::Test {
 protected:
  std::string Command(MpiFlavor flavor) {
    Result<std::vector<std::string>> words =
        MpiCommand("mpirun", {flavor, 0, "this MPI"}, plan_, settings_, {"P"});
    if (!words.ok()) return "error: " + words.status().message();
    std::string text;
    for (const std::string& word : *words)
      text += (text.empty() ? "" : " ") +
              (word.find(' ') == std::string::npos ? word : "'" + word + "'");
    return text;
  }

  Plan plan_ = PlaceRanks({"a", "b"}, {2, 2}, 4);
  Settings settings_;
};

TEST_F(MpiCommandTest, OfEachMpi) {
  EXPECT_EQ(Command(MpiFlavor::kOpenMpi),
            "mpirun --allow-run-as-root -np 4 -H a:2,b:2 -bind-to none -map-by slot -mca pml ob1 "
            "-mca btl ^openib,uct,ofi P");
  EXPECT_EQ(Command(MpiFlavor::kSpectrum),
            "mpirun --allow-run-as-root -np 4 -H a:2,b:2 -bind-to socket -map-by socket -rank-by "
            "core P");
  EXPECT_EQ(Command(MpiFlavor::kMpich),
            "mpirun -np 4 -ppn 2 -hosts a,b -bind-to none -map-by slot P");
  EXPECT_EQ(Command(MpiFlavor::kIntel), "mpirun -np 4 -ppn 2 -hosts a,b P");
}

TEST_F(MpiCommandTest, WithTheSettingsOfTheUser) {
  settings_.mpi_args = "-x \"A=b c\" --verbose";
  settings_.binding_args = "--bind-to core";
  settings_.tcp = true;
  settings_.ssh_port = 2222;
  settings_.ssh_identity_file = "key";
  settings_.network_interfaces = "eth0";
  EXPECT_EQ(Command(MpiFlavor::kOpenMpi),
            "mpirun --allow-run-as-root -np 4 -H a:2,b:2 -mca plm_rsh_args '-p 2222 -i key' -mca "
            "btl_tcp_if_include eth0 --bind-to core -mca pml ob1 -mca "
            "btl ^openib,uct,ofi -x 'A=b c' --verbose P");
  EXPECT_EQ(
      Command(MpiFlavor::kMpich),
      "mpirun -np 4 -ppn 2 -hosts a,b -iface eth0 -bootstrap ssh -bootstrap-exec-args '-p 2222 "
      "-i key' --bind-to core -x 'A=b c' --verbose P");
  EXPECT_THAT(Command(MpiFlavor::kSpectrum), HasSubstr("--bind-to core -tcp -x"));
  settings_.network_interfaces = "eth0,eth1";
  EXPECT_THAT(Command(MpiFlavor::kIntel), HasSubstr("takes one network interface"));
  settings_.mpi_args = "-x 'A";
  EXPECT_THAT(Command(MpiFlavor::kOpenMpi),
              HasSubstr("error: --mpi-args='-x 'A' cannot be split into words"));
}

TEST_F(MpiCommandTest, OnUnevenHosts) {
  plan_ = PlaceRanks({"a", "b"}, {2, 2}, 3);  // the last one may have fewer
  EXPECT_THAT(Command(MpiFlavor::kIntel), HasSubstr("-ppn 2 -hosts a,b"));
  plan_ = PlaceRanks({"a", "b"}, {1, 2}, 3);
  EXPECT_THAT(Command(MpiFlavor::kMpich), HasSubstr("-hosts a:1,b:2"));
  EXPECT_THAT(Command(MpiFlavor::kOpenMpi), HasSubstr("-H a:1,b:2"));
  EXPECT_THAT(Command(MpiFlavor::kIntel),
              HasSubstr("error: this MPI starts as many ranks on each"));
}

TEST_F(MpiCommandTest, OnManyHosts) {
  plan_ = PlaceRanks(std::vector<std::string>(64, "h"), std::vector<uint32_t>(64, 1), 64);
  for (uint32_t host = 0; host < 64; ++host) plan_.hosts[host] += std::to_string(host);
  EXPECT_THAT(Command(MpiFlavor::kOpenMpi),
              HasSubstr("-mca plm_rsh_no_tree_spawn true -mca plm_rsh_num_concurrent 64"));
}

TEST(Jsrun, HasAFileOfResources) {
  EXPECT_EQ(ResourceFile(PlaceRanks({"a", "b"}, {2, 1}, 3), {8, 8}),
            "overlapping_rs: allow\ncpu_index_using: logical\n"
            "\nrank: 0: { hostname: a; cpu: {0-3} ; gpu: * ; mem: * }\n"
            "rank: 1: { hostname: a; cpu: {4-7} ; gpu: * ; mem: * }\n"
            "\nrank: 2: { hostname: b; cpu: {0-7} ; gpu: * ; mem: * }\n");
}

TEST(Jsrun, GivesTheRanksOfEachHostTheCpusOfThatHost) {
  EXPECT_EQ(ResourceFile(PlaceRanks({"small", "big"}, {2, 2}, 4), {4, 10}),
            "overlapping_rs: allow\ncpu_index_using: logical\n"
            "\nrank: 0: { hostname: small; cpu: {0-1} ; gpu: * ; mem: * }\n"
            "rank: 1: { hostname: small; cpu: {2-3} ; gpu: * ; mem: * }\n"
            "\nrank: 2: { hostname: big; cpu: {0-4} ; gpu: * ; mem: * }\n"
            "rank: 3: { hostname: big; cpu: {5-9} ; gpu: * ; mem: * }\n");
  const std::string shared = ResourceFile(PlaceRanks({"a"}, {3}, 3), {2});
  EXPECT_THAT(shared, HasSubstr("rank: 1: { hostname: a; cpu: {1-1}"));
  EXPECT_THAT(shared, HasSubstr("rank: 2: { hostname: a; cpu: {0-0}")) << "it has no third one";
  EXPECT_THAT(ResourceFile(PlaceRanks({"a"}, {1}, 1), {0}), HasSubstr("cpu: {0-0}"));
}

TEST(Jsrun, Command) {
  Settings settings;
  EXPECT_THAT(*JsrunCommand("jsrun", "F", settings, {"P"}),
              ElementsAre("jsrun", "--erf_input", "F", "P"));
  settings.mpi_args = "-gpu -x A";
  settings.tcp = true;
  settings.binding_args = "-n 2 -a 1";
  EXPECT_THAT(*JsrunCommand("jsrun", "F", settings, {"P"}),
              ElementsAre("jsrun", "-n", "2", "-a", "1", "--smpiargs", "-tcp -gpu -x A", "P"));
}

TEST(LauncherEnd, InFewWords) {
  const LauncherEnd code = ReadLauncherEnd(
      {.wait_status = 1 << 8,
       .printed = "-----------------\nThere are not enough slots\n  in the system:\n\n  advice\n"});
  EXPECT_EQ(code.reason, "ended with exit code 1");
  EXPECT_EQ(code.words, "There are not enough slots in the system:");
  EXPECT_EQ(code.exit_code, 1);
  const LauncherEnd killed = ReadLauncherEnd({.wait_status = 9});
  EXPECT_EQ(killed.reason, "was ended by signal 9 (SIGKILL)");
  EXPECT_EQ(killed.exit_code, 137);
  EXPECT_TRUE(killed.by_signal);
  EXPECT_FALSE(ReadLauncherEnd({.wait_status = 9, .killed = true}).by_signal);
}

}  // namespace
}  // namespace hvd
