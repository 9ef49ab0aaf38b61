// Agreement: the answer to a call whose data travel by another way than its backend's: its hosts
// have all announced it, and agree about its place in the one order of such calls.
#ifndef HVD_RUNTIME_BACKENDS_AGREEMENT_H_
#define HVD_RUNTIME_BACKENDS_AGREEMENT_H_

#include <cstdint>
#include <string>
#include <vector>

namespace hvd {

struct Agreement {
  // Of this rank, from 1 on and without gaps: its next batch of such calls, whatever their process
  // set. Ranks that share several batches have them in the same order.
  uint64_t turn = 0;
  // Of the calls of a batch, which is the same on all its members; the parts of a group follow each
  // other.
  uint32_t place = 0, batch_size = 0;
  uint32_t participants = 0;  // members of the set that have not joined
  // Allgather: rows of each member of the set; alltoall: rows from each member of the set for each
  // member on this host.
  std::vector<int64_t> extents;
  // CrossHostRequest::note of each host that has members, in order of hosts. Empty: as in the batch
  // of this set before.
  std::vector<std::string> notes;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_AGREEMENT_H_
