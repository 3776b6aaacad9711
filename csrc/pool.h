// Threads that help with jobs cut into phases of small items.
//
// A phase is over when its items are done, not when every thread has come by: a thread that
// the system has put aside delays the others by one item at most, and skips what it missed.
// A job therefore belongs to all who may still look at it (shared_ptr), and the caller
// returns as soon as the last item is done.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace mezzotint {

void relax(int spins);  // one turn of waiting: pause at first, then yield the core

class Job {
 public:
  explicit Job(int phases) : phases_(phases) {}
  virtual ~Job() = default;

  // Every thread runs this; it is a sequence of share() calls, the same in every thread.
  virtual void work(int thread) = 0;

 protected:
  // Phase `phase`: range(first, last) over [0, count) in chunks; returns when all are done.
  // A thread that waits brings what the next phase reads first (`next`) into its cache.
  template <class Fn>
  void share(int phase, int count, int chunk, Fn&& range, const uint8_t* next = nullptr) {
    Phase& p = phases_[phase];
    for (int first; (first = p.next.fetch_add(chunk, std::memory_order_relaxed)) < count;) {
      const int last = first + chunk < count ? first + chunk : count;
      range(first, last);
      p.done.fetch_add(last - first, std::memory_order_acq_rel);
    }
    for (int spins = 0; p.done.load(std::memory_order_acquire) < count; ++spins) {
      if (next && spins < kAheadLines) __builtin_prefetch(next + 64 * spins);
      relax(spins);
    }
  }

 private:
  static constexpr int kAheadLines = 2048;  // 128 KiB, well inside a second-level cache

  struct alignas(64) Phase {
    std::atomic<int> next{0}, done{0};
  };
  std::vector<Phase> phases_;
};

class Pool {
 public:
  explicit Pool(int threads);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int threads() const { return threads_; }

  // Works on `job` with all threads; returns when it is done. Callers take turns.
  void run(std::shared_ptr<Job> job);

 private:
  void help(int thread);
  std::shared_ptr<Job> next_job(uint32_t& seen);

  const int threads_;
  std::mutex turn_;
  std::mutex mutex_;  // guards job_, and sleeping
  std::condition_variable wake_;
  std::shared_ptr<Job> job_;
  std::atomic<uint32_t> number_{0};
  bool stop_ = false;
  int sleepers_ = 0;
  std::vector<std::thread> workers_;
};

// each(i) for i in [0, count), on all threads.
template <class Fn>
void parallel(Pool& pool, int count, Fn each) {
  struct Loop : Job {
    Loop(int count, Fn& each) : Job(1), count(count), each(each) {}
    void work(int) override {
      share(0, count, 1, [this](int i, int) { each(i); });
    }
    int count;
    Fn& each;
  };
  pool.run(std::make_shared<Loop>(count, each));
}

}  // namespace mezzotint
