// DoctorReport: the raw results of hvdrun doctor, before they are judged. Plain values.
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

// A host's clock minus this machine's.
struct ClockSkew {
  Duration skew{}, uncertainty{};
};

struct HostReport {
  std::string name;
  bool remote = false;                    // not this machine
  HostStage stage = HostStage::kResolve;  // last stage; of a failed host, where it failed
  std::optional<uint32_t> same_as;        // it is the same host under another name
  std::vector<std::string> other_names;   // of this host; filled by OneForEachHost
  std::string trouble;                    // why it cannot be used, with advice; empty: usable
  Duration took{};                        // until its agent's first message, or its failure
  std::string skipped;                    // an installed hvdrun that other users could have changed
  std::string version;                    // of its hvdrun; empty: unknown
  std::optional<ClockSkew> clock;
  bool examined = false;  // `facts` are valid
  HostFacts facts;
};

// The route between two hosts, by number.
struct PairReport {
  uint32_t a = 0, b = 0;
  std::string trouble;               // a sentence; empty: none
  std::string address_a, address_b;  // at which the peer reached each
  Duration latency{};                // median round trip; 0: not measured
  double a_to_b = 0, b_to_a = 0;     // bytes per second; 0: not measured
};

struct DoctorReport {
  std::vector<HostReport> hosts;
  std::vector<PairReport> pairs;
  bool all_pairs = true;      // else those of the connectivity probe only
  bool pairs_wanted = false;  // there is more than one machine
  bool interrupted = false;   // by the user: missing facts were not requested
  std::string directory;      // working directory of a run
  std::string interpreter;

  size_t usable() const {
    size_t count = 0;
    for (const HostReport& host : hosts) count += host.trouble.empty() ? 1 : 0;
    return count;
  }
};

// The report without hosts that are listed under another name. Pure.
DoctorReport OneForEachHost(const DoctorReport& report);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DOCTOR_REPORT_DOCTOR_REPORT_H_
