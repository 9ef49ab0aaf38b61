// Any bytes as a dump of PyTorch's flight recorder: refused, or groups within their limits.
#include "launcher/stall/flight_dump.h"
#include "launcher/stall/plain_pickle.h"
#include "test/fuzz/seeds.h"

namespace {
using namespace hvd;
}

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  using std::string_literals::operator""s;
  std::vector<std::string> seeds;
  seeds.push_back(
      "\x80\x02}q\x00(X\x07\x00\x00\x00"
      "entriesq\x01]q\x02(}q\x03(X\r\x00\x00\x00process_groupq\x04X\x01\x00\x00\x00"
      "0q\x05X\n\x00\x00\x00"
      "default_pgq\x06\x86q\x07X\x11\x00\x00\x00"
      "collective_seq_idq\x08K\x05X\x0b\x00\x00\x00input_sizesq\t]q\n]q\x0b(K\x04K\x03"
      "eaX\x06\x00\x00\x00is_p2pq\x0c\x89uea"
      "u."s);
  seeds.push_back("\x80\x02(NK\x01M\x01\x02J\xfe\xff\xff\xff\x8a\x01\xff\x88\x89lq\x01h\x01\x86."s);
  seeds.push_back(
      "\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x01x\x94]s"
      "G\x3f\xe0\x00\x00\x00\x00\x00\x00"s);
  WriteSeeds(*argc, *argv, seeds);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const bool plain = PlainPickle::Parse(bytes).ok();
  Result<std::vector<FlightGroup>> groups = ParseFlightDump(bytes);
  if (!groups.ok()) return 0;
  Must(plain && groups->size() <= kMostFlightGroups);
  for (const FlightGroup& group : *groups) Must(group.entries.size() <= kMostFlightEntries);
  return 0;
}
