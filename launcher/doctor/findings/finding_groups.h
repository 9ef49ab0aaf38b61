// FindingGroups: hosts of which the same is said are one finding. Pure.
#ifndef HVD_LAUNCHER_DOCTOR_FINDINGS_FINDING_GROUPS_H_
#define HVD_LAUNCHER_DOCTOR_FINDINGS_FINDING_GROUPS_H_

#include <functional>
#include <string>
#include <vector>

#include "launcher/doctor/findings/finding.h"
#include "launcher/doctor/report/doctor_report.h"

namespace hvd {

class FindingGroups {
 public:
  using OfHost = std::function<std::string(const HostReport&)>;
  using OfFacts = std::function<std::string(const HostFacts&)>;

  // The hosts outlive it.
  explicit FindingGroups(const std::vector<HostReport>& hosts) : hosts_(hosts) {}

  // One finding for each different text that `say` has for a host; an empty text is none.
  void Add(Severity severity, const char* kind, const OfHost& say, const std::string& fix);
  // The same, of the hosts that were examined.
  void AddFacts(const char* kind, const OfFacts& say, const std::string& fix,
                Severity severity = Severity::kWarning);
  // Hosts whose value differs from that of most: "`name` VALUE, where most have VALUE". Hosts of
  // which nothing is known ("") are left out.
  void AddDifferences(const char* kind, const std::string& name, const OfFacts& value,
                      const std::string& fix);

  std::vector<Finding> Take() { return std::move(findings_); }

 private:
  const std::vector<HostReport>& hosts_;
  std::vector<Finding> findings_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DOCTOR_FINDINGS_FINDING_GROUPS_H_
