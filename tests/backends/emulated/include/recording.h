// What is launched while a stream is captured, to be done in each replay.
#pragma once
#include <functional>
#include <vector>

using Recorded = std::vector<std::function<void()>>;
inline Recorded* recorded = nullptr; // of the capture that is going on

template <class Step> void now_or_in_replay(Step step) {
    if (recorded)
        recorded->push_back(step);
    else
        step();
}
