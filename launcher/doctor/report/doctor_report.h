// DoctorReport: everything that hvdrun doctor found out, before anybody has judged it. Plain
// values.
#ifndef HVD_LAUNCHER_DOCTOR_REPORT_DOCTOR_REPORT_H_
#define HVD_LAUNCHER_DOCTOR_REPORT_DOCTOR_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/doctor/report/host_facts.h"
#include "launcher/job/host_records/host_stages.h"
#include "runtime/base/clock.h"

namespace hvd {

// The clock of a host minus ours.
struct ClockSkew {
  Duration skew{}, uncertainty{};
};

struct HostReport {
  std::string name;
  bool remote = false;                    // not this machine
  HostStage stage = HostStage::kResolve;  // reached; of a failed host, where it failed
  std::optional<uint32_t> same_as;        // it is this host under another name
  std::vector<std::string> other_names;   // of this host; filled by OneForEachHost
  std::string trouble;                    // why it cannot be used, with a cure; empty: it can be
  Duration took{};                        // until its agent's first word, or until it failed
  std::string skipped;                    // an installed hvdrun that strangers could have changed
  std::string version;                    // of its hvdrun; empty: it never said
  std::optional<ClockSkew> clock;
  bool examined = false;  // facts hold something
  HostFacts facts;
};

// The way between two hosts, by number.
struct PairReport {
  uint32_t a = 0, b = 0;
  std::string trouble;               // a sentence; empty: it works
  std::string address_a, address_b;  // at which the other one reached it
  Duration latency{};                // median round trip; 0: not measured
  double a_to_b = 0, b_to_a = 0;     // bytes a second; 0: not measured
};

struct DoctorReport {
  std::vector<HostReport> hosts;
  std::vector<PairReport> pairs;
  bool all_pairs = true;      // else those of the proof only
  bool pairs_wanted = false;  // there are several machines
  bool interrupted = false;   // before the end: what is missing was not asked for
  std::string directory;      // that a run would use
  std::string interpreter;

  size_t usable() const {
    size_t count = 0;
    for (const HostReport& host : hosts) count += host.trouble.empty() ? 1 : 0;
    return count;
  }
};

// The report with every host once: those that are others under another name are left out. Pure.
DoctorReport OneForEachHost(const DoctorReport& report);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DOCTOR_REPORT_DOCTOR_REPORT_H_
