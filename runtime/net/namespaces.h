// Namespaces of processes. An abstract unix socket is seen in every container that shares a
// network, and a user id means little between them: root of one container is not root of the other.
#ifndef HVD_RUNTIME_NET_NAMESPACES_H_
#define HVD_RUNTIME_NET_NAMESPACES_H_

#include <string>

#include "runtime/base/status.h"

namespace hvd {

// The user and the process namespace of this process, "user:[1] pid:[2]"; one that cannot be told
// is empty. Any thread.
std::string OurNamespaces();
// Whether the process is in both; `pid` as SO_PEERCRED says it, 0 for a process that is not seen
// from here. False where that cannot be told, unless nothing can be told of our own ones either.
bool InOurNamespaces(int pid);
// Ok, or kAborted with a sentence: the process at the other end of a connected unix socket. It
// is the one that had listened last at the address when they connected (ListenInOwnName).
// kInProgress: that process has ended, so nothing can be told; connect again.
Status CheckPeerNamespaces(int socket);

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_NAMESPACES_H_
