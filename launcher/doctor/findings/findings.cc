#include "launcher/doctor/findings/findings.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "launcher/doctor/findings/host_findings.h"
#include "launcher/doctor/findings/pair_findings.h"

namespace hvd {

std::vector<Finding> FindingsOf(const DoctorReport& report, const DoctorLimits& limits) {
  std::vector<Finding> findings = HostFindings(report, limits);
  std::ranges::move(PairFindings(report, limits), std::back_inserter(findings));
  std::ranges::stable_sort(findings, {}, &Finding::severity);
  return findings;
}

int DoctorExitCode(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& f) { return f.severity == Severity::kError; })
             ? 1
             : 0;
}

}  // namespace hvd
