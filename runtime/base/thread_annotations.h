// Annotations for clang's -Wthread-safety (checked in the asan build). Empty for other compilers.
#ifndef HVD_RUNTIME_BASE_THREAD_ANNOTATIONS_H_
#define HVD_RUNTIME_BASE_THREAD_ANNOTATIONS_H_

#if defined(__clang__)
#define HVD_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define HVD_THREAD_ATTRIBUTE(x)
#endif

// A field that may be accessed only while this mutex is held.
#define HVD_GUARDED_BY(mutex) HVD_THREAD_ATTRIBUTE(guarded_by(mutex))
// A function or lambda that must be called with these mutexes held.
#define HVD_REQUIRES(...) HVD_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
// A function that locks these mutexes itself; the caller must not hold them.
#define HVD_EXCLUDES(...) HVD_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
// A function that returns with the mutex held, or released.
#define HVD_ACQUIRE(...) HVD_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define HVD_TRY_ACQUIRE(...) HVD_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define HVD_RELEASE(...) HVD_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
// A function that clang's analysis cannot follow; a comment says why it is correct.
#define HVD_NO_THREAD_SAFETY_ANALYSIS HVD_THREAD_ATTRIBUTE(no_thread_safety_analysis)
// Classes.
#define HVD_MUTEX_CLASS HVD_THREAD_ATTRIBUTE(capability("mutex"))
#define HVD_LOCK_CLASS HVD_THREAD_ATTRIBUTE(scoped_lockable)

#endif  // HVD_RUNTIME_BASE_THREAD_ANNOTATIONS_H_
