// Compares hosts: whose results are late once every host has announced a tensor. Pure.
#ifndef HVD_TIMELINE_REPORT_HOST_COMPARISON_H_
#define HVD_TIMELINE_REPORT_HOST_COMPARISON_H_

#include <vector>

#include "timeline/report/report.h"
#include "timeline/report/trace_facts.h"

namespace hvd {

// Empty if all ranks are on one host.
std::vector<HostSpeed> CompareHosts(const TraceFacts& facts);

}  // namespace hvd

#endif  // HVD_TIMELINE_REPORT_HOST_COMPARISON_H_
