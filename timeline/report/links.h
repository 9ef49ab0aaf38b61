// Speeds of links between hosts, and whether the slow ones have a host in common. Pure.
#ifndef HVD_TIMELINE_REPORT_LINKS_H_
#define HVD_TIMELINE_REPORT_LINKS_H_

#include <optional>
#include <vector>

#include "timeline/report/report.h"
#include "timeline/report/trace_facts.h"

namespace hvd {

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

}  // namespace hvd

#endif  // HVD_TIMELINE_REPORT_LINKS_H_
