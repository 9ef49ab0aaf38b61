// Namespaces of processes. An abstract unix socket is visible in every container that shares a
// network, and user ids mean little between them: root of one container is not root of another.
#ifndef HVD_RUNTIME_NET_NAMESPACES_H_
#define HVD_RUNTIME_NET_NAMESPACES_H_

#include <string>

#include "runtime/base/status.h"

namespace hvd {

// The user and process namespaces of this process, "user:[1] pid:[2]"; an unknown one is empty. Any
// thread.
std::string OurNamespaces();
// Whether the process is in both; `pid` from SO_PEERCRED, 0 for a process not visible from here.
// False if unknown, unless our own are unknown, too.
bool InOurNamespaces(int pid);
// Checks the process at the other end of a connected unix socket: ok, or kAborted with a message.
// It is the one that had last listened at the address when they connected (ListenInOwnName).
// kInProgress: that process has ended, so this is unknown; connect again.
Status CheckPeerNamespaces(int socket);

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_NAMESPACES_H_
