// Where a process of the mesh listens: one record in the job's directory with every address at
// which it may be reachable. Connecting proves which of them works; nothing is guessed.
#ifndef HVD_RUNTIME_NET_MESH_MESH_ADDRESS_H_
#define HVD_RUNTIME_NET_MESH_MESH_ADDRESS_H_

#include <sys/socket.h>

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"
#include "runtime/net/layout.h"

namespace hvd {

inline constexpr const char* kLoopbackAddress = "127.0.0.1";

// An address and a port: "10.0.0.1:4711", "[fe80::1]:4711".
struct MeshAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  int family() const { return storage.ss_family; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  std::string Text() const;
  bool IsLoopback() const;
};

// The peer address of a connected socket. IPv4-mapped IPv6 ("::ffff:10.0.0.1"), from a dual-stack
// socket, becomes IPv4: nothing listens at the other.
MeshAddress PeerAddress(int socket);
// From a numeric address, without a port in the text. kInvalidArgument for anything else.
Result<MeshAddress> ParseMeshAddress(const std::string& numeric, uint16_t port);
// Parses the result of MeshAddress::Text.
Result<MeshAddress> ParseMeshEndpoint(std::string_view text);

// The record of a process in the directory.
struct MeshRecord {
  std::string
      machine;  // boot and network namespace: loopback addresses are valid on the same machine only
  std::vector<std::string> endpoints;  // at most 32, the preferred one first
};
std::string EncodeMeshRecord(const MeshRecord& record);
Result<MeshRecord> DecodeMeshRecord(std::string_view text);
// The endpoints usable from a machine with this name: loopback only on the same machine.
std::vector<MeshAddress> Reachable(const MeshRecord& record, std::string_view machine);

std::string ThisMachine();

// The numeric addresses of these interfaces; a name with a "/" stands for the addresses in that
// range (address_range.h). kInvalidArgument for one that this host lacks, or that has no address.
Result<std::vector<std::string>> AddressesOfInterfaces(const std::vector<std::string>& names);

// The name of this machine's interface with the numeric address; empty for loopback or none.
std::string InterfaceOf(const std::string& numeric_address);

// Non-blocking listening sockets (one per given address, or one for all interfaces), and the record
// for the others.
struct MeshListener {
  std::vector<UniqueFd> sockets;
  MeshRecord record;
};
// Each rank starts its search for a free port at a different place in the range.
Result<MeshListener> OpenMeshListener(const ListenHints& hints, uint32_t rank);

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_MESH_MESH_ADDRESS_H_
