#include "launcher/doctor/report/doctor_report.h"

namespace hvd {

DoctorReport OneForEachHost(const DoctorReport& report) {
  DoctorReport one = report;
  one.hosts.clear();
  std::vector<uint32_t> place;  // of each host, in the new list
  for (const HostReport& host : report.hosts) {
    if (host.same_as) {
      place.push_back(place[*host.same_as]);
      one.hosts[place.back()].other_names.push_back(host.name);
    } else {
      place.push_back(static_cast<uint32_t>(one.hosts.size()));
      one.hosts.push_back(host);
    }
  }
  for (PairReport& pair : one.pairs) {
    pair.a = place[pair.a];
    pair.b = place[pair.b];
  }
  return one;
}

}  // namespace hvd
