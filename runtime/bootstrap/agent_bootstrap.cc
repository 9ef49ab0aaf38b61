#include "runtime/bootstrap/agent_bootstrap.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "runtime/base/text/format.h"
#include "runtime/segment/mapped_page.h"

namespace hvd {
namespace {

// The layout is the only thing here on which another rank's numbers depend.
Status SetPlaces(const std::vector<RankRun>& runs, World* world) {
  Result<std::vector<RankPlace>> places = PlacesOf(runs, world->size);
  if (!places.ok()) return Internal("the agent sent " + places.status().message());
  if (world->rank >= world->size || (*places)[world->rank].local_rank != world->local_rank)
    return Internal("the agent sent a layout with another place for this rank");
  uint32_t here = (*places)[world->rank].host;
  auto local_size = std::count_if(places->begin(), places->end(),
                                  [&](const RankPlace& place) { return place.host == here; });
  if (local_size != world->local_size)
    return Internal("the agent sent a layout with another number of ranks on this host");
  for (const RankPlace& place : *places) world->hosts = std::max(world->hosts, place.host + 1);
  world->places = std::move(*places);
  return Status::Ok();
}

constexpr size_t kHeaderBytes = 4096;  // SEGMENT.md: one page of the machine, or less than one

}  // namespace

Status AttachPage(UniqueFd fd, uint64_t bytes, World* world) {
  if (!fd.valid()) return Internal("the agent sent a world without its job page");
  Result<MappedPage> mapped = MapPage(fd.get(), bytes);
  if (!mapped.ok()) return mapped.status();
  const JobPage& page = mapped->page;
  if (page.local_size() != world->local_size || world->local_rank >= world->local_size) {
    return Internal("the agent's job page is for another number of ranks");
  }
  // The header belongs to the agent: a stray write into it ends the rank that makes it, at that
  // instruction.
  if (::mprotect(mapped->memory.data(), kHeaderBytes, PROT_READ) != 0)
    return SystemError("protecting the header of the job page", errno);
  world->page = page;
  world->page_memory = std::move(mapped->memory);
  world->page_fd = std::move(fd);
  return Status::Ok();
}

Result<UniqueFd> HvdrunConnector::Open() {
  Result<UniqueFd> socket = ConnectLink(address_.name);
  if (!socket.ok()) return socket;
  LinkHello hello;
  hello.slot = address_.slot;
  hello.pid = static_cast<uint32_t>(::getpid());
  hello.job_key = address_.job_key;
  HVD_RETURN_IF_ERROR(SendLink(socket->get(), hello));
  return socket;
}

Result<World> AgentBootstrap::Join(Duration timeout) {
  Result<BegunGeneration> begun = link_.Join(timeout);
  if (!begun.ok()) return begun.status();
  const LinkGeneration& generation = begun->generation;
  World world;
  world.generation = generation.generation;
  world.rank = generation.rank;
  world.size = generation.size;
  world.local_rank = generation.local_rank;
  world.local_size = generation.local_size;
  world.cross_rank = generation.cross_rank;
  world.cross_size = generation.cross_size;
  world.homogeneous = generation.homogeneous != 0;
  world.ranks_change = generation.ranks_change != 0;
  world.data_key = generation.data_key;
  world.listen = generation.listen;
  Status complete = AttachPage(std::move(begun->page), generation.page_bytes, &world);
  if (complete.ok()) complete = SetPlaces(begun->layout, &world);
  if (complete.ok()) return world;
  Leave(generation.generation, SteadyNow());
  return complete;
}

// The answer is a segment of this number, unless it is 0.
Result<DataSegment> AgentBootstrap::Ask(const LinkMessage& question, uint32_t wanted) {
  Result<ReceivedLink> answer = link_.AskForSegment(question);
  if (!answer.ok()) return answer.status();
  auto& segment = std::get<LinkSegment>(answer->message);
  if (wanted != 0 && segment.segment != wanted) {
    return Internal(
        Format("the agent sent data segment {} instead of {}", segment.segment, wanted));
  }
  if (!answer->fd.valid()) return OutOfMemory(segment.error);
  return DataSegment{segment.segment, segment.bytes, std::move(answer->fd)};
}

}  // namespace hvd
