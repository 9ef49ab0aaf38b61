// hvdrun doctor without hosts: which pairs when, what a host says, what is judged of it, how it is
// shown, and the examination with scripted agents and a clock of its own.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "launcher/agent/inspection/host_inspection.h"
#include "launcher/agent/inspection/pair_probe.h"
#include "launcher/doctor/doctor_json.h"
#include "launcher/doctor/doctor_table.h"
#include "launcher/doctor/examination.h"
#include "launcher/doctor/findings/findings.h"
#include "launcher/doctor/pair_measurements.h"
#include "launcher/doctor/report/doctor_text.h"
#include "launcher/doctor/report/host_facts.h"

namespace hvd {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// ---- pairs and rounds

TEST(PairRounds, EveryPairOnceAndNoHostTwiceInARound) {
  for (uint32_t hosts : {0u, 1u, 2u, 3u, 4u, 7u, 8u, 16u, 17u, 64u, 1000u}) {
    std::set<HostPair> seen;
    auto rounds = RoundsOf(PairsOf(hosts));
    for (const auto& round : rounds) {
      std::set<uint32_t> busy;
      for (const HostPair& pair : round) {
        EXPECT_LT(pair.first, pair.second);
        EXPECT_LT(pair.second, hosts);
        EXPECT_TRUE(seen.insert(pair).second);
        EXPECT_TRUE(busy.insert(pair.first).second && busy.insert(pair.second).second);
      }
    }
    if (hosts <= 16) {
      EXPECT_EQ(seen.size(), hosts * (hosts - (hosts > 0)) / 2);
    }
    // Of k partners of each host, k rounds are the least; half as many again are enough.
    EXPECT_LE(rounds.size(), hosts <= 16 ? 1.5 * hosts : 60) << hosts;
  }
}

// ---- what a host says

TEST(HostFacts, AreReadAndWhatIsNotUnderstoodIsLeftOut) {
  HostFacts facts =
      ReadHostFacts({"cores=8", "cores.quota=1.5", "limit.memlock=unlimited", "limit.nofile=1024",
                     "limit.nproc=many", "interface=eth0 1500 10.0.0.1 fd00::1", "interface=broken",
                     "gpu=NVIDIA H200 143771 MiB", "gpu.driver=550.54", "library=torch 2.4.0+cu121",
                     "library=odd", "future=1", "no equals", "logind.kill_user_processes=yes",
                     "logind.linger=no", "shm.total=67108864", "directory=ok"});
  EXPECT_EQ(facts.cores, 8u);
  EXPECT_EQ(facts.cpu_quota, 1.5);
  EXPECT_EQ(ReadHostFacts({"cores.quota=-1"}).cpu_quota, std::nullopt);
  EXPECT_EQ(facts.memlock, kUnlimited);
  EXPECT_EQ(facts.nofile, 1024u);
  EXPECT_EQ(facts.nproc, std::nullopt);
  ASSERT_EQ(facts.interfaces.size(), 1u);
  EXPECT_EQ(facts.interfaces[0].mtu, 1500u);
  EXPECT_EQ(facts.interfaces[0].addresses, (std::vector<std::string>{"10.0.0.1", "fd00::1"}));
  EXPECT_EQ(facts.gpu_count(), 1u);
  EXPECT_EQ(facts.libraries, (std::map<std::string, std::string>{{"torch", "2.4.0+cu121"}}));
  EXPECT_EQ(facts.kill_user_processes, true);
  EXPECT_EQ(facts.linger, false);
  EXPECT_EQ(facts.shm.total, 67108864u);
  EXPECT_FALSE(facts.complete);
  EXPECT_TRUE(ReadHostFacts({"done=1"}).complete);
}

TEST(HostFacts, OfGpusAreKeptByTheirNumber) {
  const HostFacts facts = ReadHostFacts(
      {"gpu.cuda=13.0", "torch.cuda=12.8", "gpu.ecc=1 4", "gpu.memory=1 reset", "gpu.slowed=0 heat",
       "gpu.process=2 77", "gpu.process=2 78", "gpu.mode=3 prohibited", "gpu.ecc=x 4", "gpu.ecc=4",
       "gpu.link=0 1 NVLink", "gpu.link=0 2 NVLink", "gpu.link=1 2 PCI switch", "gpu.link=1"});
  EXPECT_EQ(facts.gpu_cuda, "13.0");
  EXPECT_EQ(facts.torch_cuda, "12.8");
  ASSERT_EQ(facts.gpu_faults.size(), 4u);
  EXPECT_EQ(facts.gpu_faults.at(1).ecc_errors, 4u);
  EXPECT_EQ(facts.gpu_faults.at(1).memory, "reset");
  EXPECT_EQ(facts.gpu_faults.at(0).slowed, "heat");
  EXPECT_EQ(facts.gpu_faults.at(2).processes, (std::vector<uint32_t>{77, 78}));
  EXPECT_EQ(facts.gpu_faults.at(3).mode, "prohibited");
  EXPECT_EQ(facts.gpu_links, (std::map<std::string, uint32_t>{{"NVLink", 2}, {"PCI switch", 1}}));
}

TEST(HostFacts, TheInterpreterIsTheFirstPythonOfTheCommand) {
  EXPECT_EQ(InterpreterOf({}), "python3");
  EXPECT_EQ(InterpreterOf({"python", "train.py"}), "python");
  EXPECT_EQ(InterpreterOf({"/opt/venv/bin/python3.11", "-u", "x"}), "/opt/venv/bin/python3.11");
  EXPECT_EQ(InterpreterOf({"env", "A=1", "python3", "x"}), "python3");
  EXPECT_EQ(InterpreterOf({"./train.py"}), "python3");
  EXPECT_EQ(InterpreterOf({"bash", "python.py"}), "python3");
  EXPECT_EQ(InterpreterOf({"pythonic", "x"}), "python3");
}

TEST(ExamineHere, LogindsLastWordCounts) {
  EXPECT_EQ(KillUserProcessesIn({"#KillUserProcesses=yes\n"}), "");
  EXPECT_EQ(KillUserProcessesIn({"[Login]\nKillUserProcesses=no\n", " KillUserProcesses=yes\n"}),
            "yes");
  EXPECT_EQ(KillUserProcessesIn({"KillUserProcesses=1\n", "KillUserProcesses=off\n"}), "no");
}

TEST(ExamineHere, ReadsMeminfoGpusAndPython) {
  EXPECT_EQ(MeminfoBytes("MemTotal:  16 kB\nMemFree: 1 kB\n", "MemTotal"), 16384u);
  EXPECT_EQ(MeminfoBytes("MemTotalX: 16 kB\n", "MemTotal"), 0u);
  EXPECT_EQ(ParseGpuFacts("a warning\ngpu=NVIDIA H200 1 MiB\ngpu.said=1\n"),
            (std::vector<std::string>{"gpu=NVIDIA H200 1 MiB", "gpu.said=1"}));
  EXPECT_EQ(ParseGpuFacts("gpu.driver=580\n"),
            (std::vector<std::string>{
                "gpu.driver=580", "gpu.trouble=the process that asked NVIDIA's driver has died"}));
  EXPECT_EQ(PythonFacts("a warning\npython.path=/p\npython.version=3.11.2\nlibrary=a 1\ncores=9\n"),
            (std::vector<std::string>{"python.path=/p", "python.version=3.11.2", "library=a 1"}));
  EXPECT_EQ(PythonFacts("Traceback\nImportError: x\n"),
            (std::vector<std::string>{"python.trouble=it said: ImportError: x"}));
  EXPECT_EQ(PythonFacts(""), (std::vector<std::string>{"python.trouble=it said nothing"}));
}

// ---- findings

HostReport Good(const std::string& name) {
  HostReport host;
  host.name = name;
  host.remote = true;
  host.stage = HostStage::kReady;
  host.took = milliseconds(300);
  host.version = "1";
  host.clock = ClockSkew{microseconds(10), microseconds(100)};
  host.examined = true;
  host.facts = ReadHostFacts(
      {"cores=8", "memory.total=1000000000", "limit.memlock=unlimited", "limit.nofile=65536",
       "limit.nproc=90000", "interface=eth0 1500 10.0.0.1", "gpu=H200 143771 MiB",
       "gpu=H200 143771 MiB", "gpu.driver=550", "python.path=/p", "python.version=3.11.2",
       "library=torch 2.4", "directory=ok", "directory.total=1000000000000",
       "directory.free=500000000000", "shm.total=8000000000", "done=1"});
  return host;
}

DoctorReport GoodReport(size_t count) {
  DoctorReport report;
  report.directory = "/home/me";
  report.interpreter = "python3";
  for (size_t i = 0; i < count; ++i) report.hosts.push_back(Good("n" + std::to_string(i)));
  for (const HostPair& pair : PairsOf(static_cast<uint32_t>(count))) {
    PairReport& route = report.pairs.emplace_back();
    route.a = pair.first;
    route.b = pair.second;
    route.address_a = "10.0.0.1";
    route.address_b = "10.0.0.2";
    route.latency = microseconds(100 + route.a);
    route.a_to_b = route.b_to_a = 1e9;
  }
  return report;
}

TEST(Findings, GoodHostsHaveNone) {
  for (size_t count : {1u, 2u, 4u, 64u}) {
    std::vector<Finding> findings = FindingsOf(GoodReport(count));
    EXPECT_TRUE(findings.empty()) << findings[0].what;
  }
}

struct BadHost {
  const char* kind;
  std::function<void(HostReport&)> make_bad;
  const char* said;
};

TEST(Findings, AnInterfaceForNcclIsLookedForAsNcclDoes) {
  for (const char* right : {"", "eth", "ib0,eth0", "=eth0", "^docker", "lo"}) {
    DoctorReport report = GoodReport(2);
    for (HostReport& host : report.hosts) host.facts.nccl_interface = right;
    EXPECT_TRUE(FindingsOf(report).empty()) << right;
  }
}

TEST(Findings, OneBadHostOfFourIsNamedWithWhatToDo) {
  auto fact = [](const char* line) {
    return [line](HostReport& host) {
      HostFacts one = ReadHostFacts({line});
      std::string key = std::string(line).substr(0, std::string(line).find('='));
      if (key == "limit.memlock") host.facts.memlock = one.memlock;
      if (key == "limit.nofile") host.facts.nofile = one.nofile;
      if (key == "limit.nproc") host.facts.nproc = one.nproc;
      if (key == "directory") host.facts.directory = one.directory;
      if (key == "directory.free") host.facts.directory_disk.free = one.directory_disk.free;
      if (key == "shm.total") host.facts.shm.total = one.shm.total;
      if (key == "interface") host.facts.interfaces = one.interfaces;
      if (key == "python.version") host.facts.python_version = one.python_version;
    };
  };
  const std::vector<BadHost> table = {
      {"host", [](HostReport& h) { h.trouble = "logging in: no key; try ssh-copy-id"; }, "no key"},
      {"examination", [](HostReport& h) { h.examined = false; }, "did not say what it has"},
      {"examination", [](HostReport& h) { h.facts.complete = false, h.facts.directory = ""; },
       "a file system did not answer"},
      {"python", fact("python.version=3.10.1"), "has Python 3.10.1, where most have 3.11.2"},
      {"python", [](HostReport& h) { h.facts.python_path = "/q"; }, "has Python at /q"},
      {"library", [](HostReport& h) { h.facts.libraries["torch"] = "2.5"; },
       "has torch 2.5, where most have 2.4"},
      {"library", [](HostReport& h) { h.facts.libraries.clear(); },
       "has torch nowhere, where most have 2.4"},
      {"directory", fact("directory=No such file"), "cannot be used there: No such file"},
      {"clock", [](HostReport& h) { h.clock->skew = seconds(-90); }, "90 s behind"},
      {"gpu", [](HostReport& h) { h.facts.gpus.pop_back(); }, "number of GPUs is 1"},
      {"gpu", [](HostReport& h) { h.facts.gpu_driver = "535"; }, "GPU driver 535"},
      {"gpu", [](HostReport& h) { h.facts.gpu_trouble = "no driver"; }, "do not answer: no driver"},
      {"gpu", [](HostReport& h) { h.facts.gpu_faults[1].memory = "broken"; },
       "GPU 1 has broken memory"},
      {"gpu", [](HostReport& h) { h.facts.gpu_faults[0].mode = "prohibited"; },
       "GPU 0 refuses all work"},
      {"gpu", [](HostReport& h) { h.facts.gpu_faults[1] = {2, "reset", "", "", false, {}}; },
       "GPU 1 has had 2 uncorrected memory errors and replaces the bad rows"},
      {"gpu", [](HostReport& h) { h.facts.gpu_faults[0].slowed = "heat"; },
       "GPU 0 is slowed down by heat"},
      {"gpu",
       [](HostReport& h) {
         h.facts.gpu_faults[1].processes = {77, 78};
       },
       "GPU 1 is in use by processes 77, 78"},
      {"gpu", [](HostReport& h) { h.facts.nccl_interface = "ib0,eth1"; },
       "NCCL_SOCKET_IFNAME=ib0,eth1 names none"},
      {"gpu", [](HostReport& h) { h.facts.nccl_interface = "=eth"; }, "=eth names none"},
      {"gpu", [](HostReport& h) { h.facts.gpu_cuda = "12.4", h.facts.torch_cuda = "13.0"; },
       "runs CUDA up to 12.4, and PyTorch was built for CUDA 13.0"},
      {"memlock", fact("limit.memlock=65536"), "only 64 KiB of memory"},
      {"nofile", fact("limit.nofile=1024"), "only 1024 files"},
      {"nproc", fact("limit.nproc=100"), "only 100 processes"},
      {"logind", [](HostReport& h) { h.facts.kill_user_processes = true; },
       "KillUserProcesses=yes"},
      {"disk", fact("directory.free=1000000"), "nearly full: 977 KiB of 931 GiB are free"},
      {"shm", fact("shm.total=67108864"), "/dev/shm has 64 MiB"},
      {"mtu", fact("interface=eth0 9000 10.0.0.1"), "eth0 is 9000, where most have 1500"},
  };
  for (const BadHost& bad : table) {
    DoctorReport report = GoodReport(4);
    bad.make_bad(report.hosts[2]);
    std::vector<Finding> findings = FindingsOf(report);
    ASSERT_EQ(findings.size(), 1u) << bad.said << ": " << findings.size();
    EXPECT_EQ(findings[0].kind, bad.kind) << bad.said;
    EXPECT_EQ(findings[0].hosts, std::vector<std::string>{"n2"}) << bad.said;
    EXPECT_NE(findings[0].what.find(bad.said), std::string::npos) << findings[0].what;
    if (findings[0].kind != "host") {
      EXPECT_FALSE(findings[0].fix.empty()) << bad.said;
    }
  }
}

TEST(Findings, WhatIsNoTroubleIsNotSaid) {
  DoctorReport report = GoodReport(3);
  // As uncertain as it is wrong.
  report.hosts[0].clock = ClockSkew{seconds(2), milliseconds(1500)};
  report.hosts[1].facts.kill_user_processes = report.hosts[1].facts.linger = true;
  // Without GPUs and RDMA nobody locks memory.
  for (HostReport& host : report.hosts) {
    host.facts.gpus.clear();
    host.facts.memlock = 65536;
  }
  // An interface that is elsewhere called otherwise; a small disk that is half empty.
  report.hosts[2].facts.interfaces[0].name = "ib0";
  report.hosts[2].facts.interfaces[0].mtu = 4092;
  report.hosts[2].facts.directory_disk = {1000000, 500000};
  std::vector<Finding> findings = FindingsOf(report);
  EXPECT_TRUE(findings.empty()) << findings[0].what;
}

TEST(Findings, TheHostThatBadPairsHaveInCommonIsNamed) {
  DoctorReport report = GoodReport(4);
  for (PairReport& pair : report.pairs) {
    if (pair.a == 1 || pair.b == 1) pair.a_to_b = 1e6;
  }
  std::vector<Finding> findings = FindingsOf(report);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].kind, "speed");
  EXPECT_EQ(findings[0].hosts, std::vector<std::string>{"n1"});
  EXPECT_NE(findings[0].what.find("is common to 3 bad pairs of 3"), std::string::npos);
  EXPECT_EQ(DoctorExitCode(findings), 0);
}

TEST(Findings, OnePairAloneIsNamedAsAPair) {
  DoctorReport report = GoodReport(4);
  report.pairs[0].latency = milliseconds(50);
  report.pairs[1].trouble = "small messages pass";
  std::vector<Finding> findings = FindingsOf(report);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].kind, "path");
  EXPECT_EQ(findings[0].hosts.size(), 2u);
  EXPECT_EQ(findings[1].kind, "latency");
  EXPECT_EQ(findings[1].hosts.size(), 2u);
  EXPECT_EQ(DoctorExitCode(findings), 1);
}

// ---- how it is shown

TEST(DoctorReport, HasEveryHostOnce) {
  DoctorReport report;
  report.hosts.resize(4);
  for (size_t i = 0; i < 4; ++i) report.hosts[i].name = std::string(1, static_cast<char>('a' + i));
  report.hosts[1].same_as = report.hosts[2].same_as = 0;
  report.pairs.resize(1);
  report.pairs[0].b = 3;
  const DoctorReport one = OneForEachHost(report);
  ASSERT_EQ(one.hosts.size(), 2U);
  EXPECT_EQ(one.hosts[0].other_names, (std::vector<std::string>{"b", "c"}));
  EXPECT_EQ(one.hosts[1].name, "d");
  EXPECT_EQ(one.pairs[0].b, 1U);
}

TEST(DoctorTable, OfTwoHosts) {
  DoctorReport report = GoodReport(2);
  report.hosts[1].facts.python_version = "3.12.0";
  std::string text = DoctorTable(report, FindingsOf(report));
  EXPECT_NE(text.find("  n0            ready after 300 ms, clock +10 us (+-100 us)\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  Python        3.11.2 at /p   [n0]\n                3.12.0 at /p   [n1]\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  GPUs          2 x H200 143771 MiB, driver 550\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("  n0 - n1       100 us   1.0 GB/s there"), std::string::npos) << text;
  EXPECT_NE(text.find("  warning  n1: has Python 3.12.0, where most have 3.11.2\n"),
            std::string::npos)
      << text;
  EXPECT_TRUE(text.ends_with("2 of 2 hosts can be used; 0 errors, 1 warning.\n")) << text;
}

TEST(DoctorTable, OfSixtyFourHostsFitsAScreen) {
  DoctorReport report = GoodReport(64);
  report.all_pairs = false;
  for (uint32_t host : {7u, 9u}) {
    report.hosts[host].stage = HostStage::kLogin;
    report.hosts[host].trouble = "logging in: no key; try ssh-copy-id";
    report.hosts[host].examined = false;
  }
  std::string text = DoctorTable(report, FindingsOf(report));
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 40) << text;
  EXPECT_NE(text.find("  n7, n9: FAILED, logging in\n  62 of 64 ready\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("  round trip: best 100 us ("), std::string::npos) << text;
  EXPECT_NE(text.find(", worst 162 us (n62 - n63)"), std::string::npos) << text;
  EXPECT_NE(text.find("  error    n7, n9: logging in: no key"), std::string::npos) << text;
}

TEST(DoctorJson, HasEverythingAndNullForWhatIsNotKnown) {
  DoctorReport report = GoodReport(2);
  report.hosts[1] = HostReport{.name = "bad \"name\"\n", .trouble = "no"};
  report.pairs[0].latency = Duration::zero();
  const nlohmann::json json = nlohmann::json::parse(DoctorJson(report, FindingsOf(report), 1));
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["hvdrun"], HVD_VERSION);
  EXPECT_EQ(json["exit_code"], 1);
  EXPECT_EQ(json["interrupted"], false);
  EXPECT_EQ(json["hosts"][0]["facts"]["limits"]["memlock"], "unlimited");
  EXPECT_EQ(json["hosts"][0]["facts"]["limits"]["nofile"], 65536);
  EXPECT_EQ(json["hosts"][1], nlohmann::json::parse(R"({
      "name": "bad \"name\"\n", "other_names": [], "remote": false, "usable": false,
      "stage": "resolve", "trouble": "no",
      "seconds": 0.0, "hvdrun": null, "clock": null, "facts": null})"));
  EXPECT_TRUE(json["pairs"][0]["round_trip_seconds"].is_null());
}

TEST(DoctorText, HasUnits) {
  EXPECT_EQ(BytesText(0), "0 bytes");
  EXPECT_EQ(BytesText(1536), "1.5 KiB");
  EXPECT_EQ(BytesText(kUnlimited), "unlimited");
  EXPECT_EQ(SpeedText(1.25e9), "1.2 GB/s");
  EXPECT_EQ(SpeedText(98e6), "98 MB/s");
  EXPECT_EQ(TimeText(microseconds(85)), "85 us");
  EXPECT_EQ(TimeText(microseconds(1500)), "1.5 ms");
  EXPECT_EQ(SignedTimeText(-seconds(100)), "-100 s");
  EXPECT_EQ(SignedTimeText(-std::chrono::nanoseconds(100)), "0 us") << "zero has no sign";
}

// ---- the examination

class ExaminationTest : public testing::Test {
 protected:
  void Begin(uint32_t hosts, bool remote = true) {
    ExaminationOptions options;
    for (uint32_t i = 0; i < hosts; ++i) options.hosts.push_back({"n" + std::to_string(i), remote});
    options.version = "1";
    options.job_key = "key";
    options.wall_minus_steady_ns = 1'000'000;
    examination_.emplace(std::move(options));
    examination_->Begin(now_);
  }

  void Greet(uint32_t host) {
    AgentReady ready;
    ready.version = "1";
    examination_->Receive(host, ready, now_);
    Serve();
  }

  // Agents answer everything at once, but for what a test takes into its own hands.
  void Serve() {
    for (auto actions = examination_->PopActions(); !actions.empty();
         actions = examination_->PopActions()) {
      for (const ExaminationAction& action : actions) {
        if (const auto* end = std::get_if<EndHost>(&action)) {
          ended_.push_back(end->host);
          if (!deaf_.contains(end->host)) examination_->Ended(end->host, "", now_);
          continue;
        }
        const auto& tell = std::get<SendToHost>(action);
        told_[tell.host].push_back(tell.message.index());
        if (!deaf_.contains(tell.host)) Answer(tell.host, tell.message);
      }
    }
  }

  void Answer(uint32_t host, const ToAgent& message) {
    auto hear = [&](const ToDriver& said) { examination_->Receive(host, said, now_); };
    if (const auto* ask = std::get_if<AskTime>(&message)) {
      hear(TimeReply{ask->number, now_.time_since_epoch().count() + 1'000'000 + ahead_ns_});
    } else if (std::holds_alternative<ExamineHost>(message)) {
      if (!silent_.contains(host)) hear(HostExam{{"cores=4", "done=1"}});
    } else if (const auto* prove = std::get_if<ProbeConnectivity>(&message)) {
      ConnectivityProbed proven;
      for (size_t i = 0; i < prove->others.size(); ++i) proven.addresses.push_back("10.0.0.1");
      if (host == unreachable_) {
        proven.trouble = "it cannot reach n0";
        for (std::string& address : proven.addresses) address.clear();
      }
      if (!no_prove_.contains(host)) hear(proven);
    } else if (const auto* measure = std::get_if<MeasurePair>(&message)) {
      measured_.push_back({host, measure->peer});
      if (no_measure_.contains(host)) return;
      hear(PairMeasured{measure->number, measure->peer, "", "10.0.0.9", measure->leads ? 5000 : 0,
                        1'000'000});
    } else if (std::holds_alternative<FinishJob>(message)) {
      examination_->Ended(host, "", now_);
    }
  }

  void Pass(Duration time) {
    now_ += time;
    examination_->Tick(now_);
    Serve();
  }

  const DoctorReport& report() const { return examination_->report(); }

  TimePoint now_{seconds(1000)};
  std::optional<Examination> examination_;
  std::map<uint32_t, std::vector<size_t>> told_;
  std::vector<uint32_t> ended_;
  std::vector<HostPair> measured_;
  std::set<uint32_t> deaf_, silent_, no_prove_, no_measure_;
  uint32_t unreachable_ = ~0U;
  int64_t ahead_ns_ = 0;
};

TEST_F(ExaminationTest, GoesTheWholeWayAndEnds) {
  Begin(4);
  ahead_ns_ = 3'000'000'000;
  for (uint32_t host = 0; host < 4; ++host) {
    examination_->Entered(host, HostStage::kLogin, now_);
    now_ += milliseconds(100);
    Greet(host);
  }
  EXPECT_TRUE(examination_->over());
  EXPECT_TRUE(ended_.empty());
  EXPECT_EQ(examination_->NextTick(), std::nullopt);
  EXPECT_EQ(report().usable(), 4u);
  EXPECT_EQ(report().pairs.size(), 6u);
  for (const PairReport& pair : report().pairs) {
    EXPECT_EQ(pair.trouble, "");
    EXPECT_EQ(pair.latency, microseconds(5));
    EXPECT_EQ(pair.a_to_b, 1e6);
    EXPECT_EQ(pair.b_to_a, 1e6);
  }
  for (const HostReport& host : report().hosts) {
    EXPECT_EQ(host.stage, HostStage::kReady);
    EXPECT_EQ(host.facts.cores, 4u);
    EXPECT_EQ(host.clock->skew, seconds(3));
    EXPECT_EQ(host.clock->uncertainty, Duration::zero());
  }
  EXPECT_EQ(report().hosts[2].took, milliseconds(300));
}

TEST_F(ExaminationTest, ASlowAnswerMakesTheClockUncertainAndTheQuickestCounts) {
  Begin(1, false);
  AgentReady ready;
  ready.version = "1";
  examination_->Receive(0, ready, now_);
  uint32_t number = 0;
  for (Duration route :
       {milliseconds(40), milliseconds(2), milliseconds(30), milliseconds(9), milliseconds(50)}) {
    examination_->PopActions();
    // The clock there is 7 ms ahead, and the answer is given when half of the time is over.
    int64_t wall = (now_ + route / 2).time_since_epoch().count() + 1'000'000 + 7'000'000;
    now_ += route;
    examination_->Receive(0, TimeReply{number++, wall}, now_);
  }
  EXPECT_EQ(report().hosts[0].clock->skew, milliseconds(7));
  EXPECT_EQ(report().hosts[0].clock->uncertainty, milliseconds(1));
}

TEST_F(ExaminationTest, AHostThatFailsKeepsNobodyFromBeingExamined) {
  Begin(3);
  examination_->Entered(1, HostStage::kConnect, now_);
  Greet(0);
  Greet(2);
  EXPECT_TRUE(measured_.empty()) << "the pairs wait for whoever may still come";
  examination_->Ended(1, "the connection was refused", now_);
  Serve();
  EXPECT_TRUE(examination_->over());
  EXPECT_EQ(report().hosts[1].stage, HostStage::kConnect);
  EXPECT_EQ(report().hosts[1].trouble, "connecting: the connection was refused");
  EXPECT_EQ(report().usable(), 2u);
  ASSERT_EQ(report().pairs.size(), 1u);
  EXPECT_EQ(report().pairs[0].b, 2u);
  EXPECT_EQ(report().pairs[0].trouble, "");
}

TEST_F(ExaminationTest, AHostThatStaysInAStageIsGivenUpAtItsLimit) {
  Begin(2);
  examination_->Entered(1, HostStage::kConnect, now_);
  Greet(0);
  EXPECT_FALSE(examination_->over());
  EXPECT_LE(*examination_->NextTick() - now_, seconds(10));
  examination_->PopSlow(now_ + seconds(10));
  Pass(seconds(10));
  EXPECT_EQ(ended_, std::vector<uint32_t>{1});
  EXPECT_TRUE(examination_->over());
  EXPECT_NE(report().hosts[1].trouble.find("it took longer than 10 s"), std::string::npos);
}

TEST_F(ExaminationTest, AnotherVersionIsATrouble) {
  Begin(1);
  AgentReady ready;
  ready.version = "2";
  examination_->Receive(0, ready, now_);
  Serve();
  EXPECT_TRUE(examination_->over());
  EXPECT_EQ(report().hosts[0].version, "2");
  EXPECT_NE(report().hosts[0].trouble.find("install the same version"), std::string::npos);
}

TEST_F(ExaminationTest, WhoDoesNotSayWhatItHasIsNotWaitedForEver) {
  Begin(2);
  silent_ = {1};
  Greet(0);
  Greet(1);
  EXPECT_TRUE(measured_.empty());
  Pass(Examination::kExamLimit + seconds(2));
  EXPECT_TRUE(examination_->over());
  EXPECT_TRUE(report().hosts[0].examined);
  EXPECT_FALSE(report().hosts[1].examined);
  EXPECT_EQ(report().usable(), 2u);
  EXPECT_EQ(report().pairs[0].trouble, "");
}

TEST_F(ExaminationTest, AHostThatIsLostLeavesItsPairs) {
  Begin(3);
  no_measure_ = {2};
  for (uint32_t host = 0; host < 3; ++host) Greet(host);
  EXPECT_FALSE(examination_->over());
  examination_->Ended(2, "the connection was lost", now_);
  Serve();
  EXPECT_TRUE(examination_->over());
  EXPECT_NE(report().hosts[2].trouble.find("the connection was lost"), std::string::npos);
  ASSERT_EQ(report().pairs.size(), 3u);
  for (const PairReport& pair : report().pairs)
    EXPECT_EQ(pair.trouble, pair.b == 2 ? "n2 was lost" : "");
}

TEST_F(ExaminationTest, AMeasurementThatIsNotAnsweredEndsAtItsDeadline) {
  Begin(2);
  no_measure_ = {1};
  Greet(0);
  Greet(1);
  Pass(PairProbe::kAnswerLimit + seconds(2));
  EXPECT_TRUE(examination_->over());
  EXPECT_NE(report().pairs[0].trouble.find("n1 did not measure it in time"), std::string::npos);
}

TEST_F(ExaminationTest, WhoCannotReachTheOthersIsNotMeasured) {
  Begin(3);
  unreachable_ = 1;
  for (uint32_t host = 0; host < 3; ++host) Greet(host);
  EXPECT_TRUE(examination_->over());
  EXPECT_EQ(report().hosts[1].stage, HostStage::kProof);
  EXPECT_NE(report().hosts[1].trouble.find("it cannot reach n0"), std::string::npos);
  EXPECT_TRUE(report().hosts[1].examined);
  EXPECT_EQ(measured_.size(), 2u) << "of the other two";
}

TEST_F(ExaminationTest, WhoCannotReachAHostThatWasLostIsNotToBlame) {
  for (bool lost_first : {true, false}) {
    Begin(3);
    no_prove_ = {0, 1, 2};
    for (uint32_t host = 0; host < 3; ++host) Greet(host);
    no_prove_.clear();
    if (lost_first) examination_->Ended(2, "the connection was lost", now_);
    examination_->Receive(0, ConnectivityProbed{"it cannot reach n2", {"10.0.0.2", ""}}, now_);
    examination_->Receive(1, ConnectivityProbed{"it cannot reach n0", {"", ""}}, now_);
    if (!lost_first) examination_->Ended(2, "the connection was lost", now_);
    Serve();
    EXPECT_TRUE(examination_->over());
    EXPECT_EQ(report().hosts[0].trouble, "");
    EXPECT_NE(report().hosts[1].trouble.find("it cannot reach n0"), std::string::npos);
    EXPECT_NE(report().hosts[2].trouble.find("was lost"), std::string::npos);
  }
}

TEST_F(ExaminationTest, CtrlCEndsItAtOnceAndTheSecondOneWaitsForNobody) {
  Begin(3);
  deaf_ = {0, 1};
  examination_->Entered(1, HostStage::kLogin, now_);
  Greet(0);
  examination_->Stop(now_);
  Serve();
  EXPECT_EQ(told_[0].back(), ToAgent(FinishJob{}).index());
  EXPECT_EQ(ended_, (std::vector<uint32_t>{1, 2}));
  EXPECT_FALSE(examination_->over());
  EXPECT_TRUE(report().interrupted);
  EXPECT_EQ(report().hosts[1].trouble, "logging in: was interrupted");
  ended_.clear();
  examination_->Stop(now_);
  Serve();
  EXPECT_EQ(ended_, (std::vector<uint32_t>{0, 1})) << "once more, by all means";
  Pass(Examination::kFinishLimit);  // even of an agent that cannot be ended
  EXPECT_TRUE(examination_->over());
}

}  // namespace
}  // namespace hvd
