// Findings about single hosts. Pure.
#ifndef HVD_LAUNCHER_DOCTOR_FINDINGS_HOST_FINDINGS_H_
#define HVD_LAUNCHER_DOCTOR_FINDINGS_HOST_FINDINGS_H_

#include <functional>
#include <string>
#include <vector>

#include "launcher/doctor/findings/finding.h"
#include "launcher/doctor/report/doctor_report.h"

namespace hvd {

// FindingGroups: merges equal findings of several hosts. Pure.
class FindingGroups {
 public:
  using OfHost = std::function<std::string(const HostReport&)>;
  using OfFacts = std::function<std::string(const HostFacts&)>;

  // `hosts` outlives this object.
  explicit FindingGroups(const std::vector<HostReport>& hosts) : hosts_(hosts) {}

  // Adds one finding per distinct text that `say` returns for a host; empty: none.
  void Add(Severity severity, const char* kind, const OfHost& say, const std::string& fix);
  // The same for examined hosts.
  void AddFacts(const char* kind, const OfFacts& say, const std::string& fix,
                Severity severity = Severity::kWarning);
  // Adds hosts whose value differs from the majority's: "`name` VALUE, where most have VALUE".
  // Ignores unknown values ("").
  void AddDifferences(const char* kind, const std::string& name, const OfFacts& value,
                      const std::string& fix);

  std::vector<Finding> Release() { return std::move(findings_); }

 private:
  const std::vector<HostReport>& hosts_;
  std::vector<Finding> findings_;
};

// In this order: whether it can be reached and examined, Python, clock, hardware, limits, disks,
// network interfaces.
std::vector<Finding> HostFindings(const DoctorReport& report, const DoctorLimits& limits);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DOCTOR_FINDINGS_HOST_FINDINGS_H_
