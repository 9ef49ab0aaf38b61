// The parts of MakeReport (analysis.h), each with a source of its own name. Pure.
#ifndef HVD_TIMELINE_REPORT_REPORT_PARTS_H_
#define HVD_TIMELINE_REPORT_REPORT_PARTS_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "timeline/report/report.h"
#include "timeline/report/trace_facts.h"

namespace hvd {

// ---- steps.cc: steps of a rank: rounds of its recurring tensors

struct Steps {
  // Places in RankHistory::operations: each begins a step; the last one only ends the one before.
  std::vector<size_t> begins;
  size_t tensors = 0;  // of one step
};

// Most recurring names occur once per step, so their count is the number of steps; the one
// submitted first begins each step. Without recurring names there are no steps.
Steps FindSteps(const RankHistory& rank);

// ---- lateness.cc: which ranks delay the others, where, and for what share of the time

// Fills last_share and lost_by_others_ns of the ranks, and the straggler: the rank for which the
// others wait longest within `range`. A rank waits for another one while its program waits for a
// result and that one is the last that has not submitted some tensor.
void AddLateness(const TraceFacts& facts, const TimeRange& range, Report* report);

// ---- host_comparison.cc: whose results are late once every host has announced a tensor

// Empty if all ranks are on one host.
std::vector<HostSpeed> CompareHosts(const TraceFacts& facts);

// ---- links.cc: speeds of links between hosts, and whether the slow ones have a host in common

// `hosts`: of the report of these facts.
std::vector<LinkReport> LinksIn(const TraceFacts& facts, const std::vector<HostSpeed>& hosts);

// Links that are less than half as fast as the median of the others.
struct SlowLinks {
  std::optional<size_t> host;         // all links of this host, to it and from it
  std::optional<LinkReport> slowest;  // or only some: the slowest one
  double slow = 0, others = 0;        // bytes per second, medians
};
// Nothing where all links are alike, or there are too few to tell.
std::optional<SlowLinks> FindSlowLinks(const std::vector<LinkReport>& links);

// ---- findings.cc: sentences on what limits the job, worst first

std::vector<JobLimit> FindingsOf(const Report& report);

}  // namespace hvd

#endif  // HVD_TIMELINE_REPORT_REPORT_PARTS_H_
