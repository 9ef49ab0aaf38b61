// Any bytes as an answer of a key-value server, and as a note in it: refused, or taken and written back the same.
#include "launcher/http_store.h"
#include "launcher/meeting_notes.h"
#include "runtime/net/layout.h"
#include "test/fuzz/seeds.h"

namespace {
using namespace hvd;
}

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  WorldNote world{3, "key", {"a", "b"}, {{0, 0, 2}, {1, 0, 1}}};
  WriteSeeds(
      *argc, *argv,
      {EncodeNote(RankNote{"token", 1, 2}), EncodeNote(world),
       "HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nbody", "HTTP/1.1 404 Not Found\r\n\r\n"});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (auto reply = ParseHttpReply(bytes); reply.ok()) Must(reply->body.size() < size);
  if (auto note = DecodeRankNote(bytes); note.ok())
    Must(DecodeRankNote(EncodeNote(*note)).value() == *note);
  if (auto note = DecodeWorldNote(bytes); note.ok()) {
    Must(DecodeWorldNote(EncodeNote(*note)).value() == *note);
    for (uint32_t ranks = 1; ranks < 8; ++ranks) {
      auto places = PlacesOf(note->layout, ranks);
      if (places.ok()) Must(PartOfHost(*places, 0).size == ranks);
    }
  }
  return 0;
}
