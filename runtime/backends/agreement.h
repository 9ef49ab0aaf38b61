// Agreement: the answer to a call whose data another transport moves: all its hosts have announced
// it and agree on its place in the single order of such calls.
#ifndef HVD_RUNTIME_BACKENDS_AGREEMENT_H_
#define HVD_RUNTIME_BACKENDS_AGREEMENT_H_

#include <cstdint>
#include <string>
#include <vector>

namespace hvd {

struct Agreement {
  // This rank's next batch of such calls over all process sets: 1, 2 ... without gaps. Ranks that
  // share several batches have them in the same order.
  uint64_t turn = 0;
  // Position in the batch, which is the same on all its members; the parts of a group are adjacent.
  uint32_t place = 0, batch_size = 0;
  uint32_t participants = 0;  // members of the set that have not joined
  // Allgather: rows of each member of the set; alltoall: rows from each member of the set for each
  // member on this host.
  std::vector<int64_t> extents;
  // InterHostRequest::note of each host with members, in order of hosts. Empty: as in this set's
  // previous batch.
  std::vector<std::string> notes;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_AGREEMENT_H_
