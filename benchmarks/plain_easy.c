/* EASY backfilling on a flat machine, as short as it can be without being slow: the yardstick for the compiled engine.
   Events of an instant are completions, by job, then arrivals; then one pass. Jobs come in order of submission. */
#include <stdlib.h>
#include <string.h>

typedef struct { double time; int job; } Event;

static int earlier(Event a, Event b) { return a.time < b.time || (a.time == b.time && a.job < b.job); }

static void push(Event *heap, int at, Event event) {
    for (; at > 0 && earlier(event, heap[(at - 1) / 2]); at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
    heap[at] = event;
}

static void pop(Event *heap, int count) { /* count: of those that stay */
    int at = 0;
    for (int child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && earlier(heap[child + 1], heap[child])) child++;
        if (!earlier(heap[child], heap[count])) break;
        heap[at] = heap[child];
    }
    heap[at] = heap[count];
}

int schedule(int jobs, int nodes, const double *submit, const double *run, const double *estimate, const int *size,
             double *start) {
    Event *heap = malloc(jobs * sizeof *heap), *ends = malloc(jobs * sizeof *ends); /* ends: as expected, ascending */
    int *queue = malloc(jobs * sizeof *queue), head = 0, tail = 0, running = 0, next = 0, free_nodes = nodes;
    if (!heap || !ends || !queue) return 1;
    while (next < jobs || running) {
        double now = running && (next == jobs || heap[0].time < submit[next]) ? heap[0].time : submit[next];
        while (running && heap[0].time == now) {
            int at = 0, job = heap[0].job;
            while (ends[at].job != job) at++;
            memmove(ends + at, ends + at + 1, (running - at - 1) * sizeof *ends);
            pop(heap, --running);
            free_nodes += size[job];
        }
        while (next < jobs && submit[next] == now) queue[tail++] = next++;
        double shadow = -1;
        int extra = 0; /* nodes that the head job leaves free at its reservation */
        for (int at = head; at < tail && free_nodes; at++) {
            int job = queue[at], at_head = at == head, fits = size[job] <= free_nodes;
            if (!at_head && fits && shadow < 0) {
                int end = 0;
                for (extra = free_nodes - size[queue[head]]; end < running; extra += size[ends[end++].job])
                    if (extra >= 0 && ends[end].time > shadow) break;
                    else if (extra + size[ends[end].job] >= 0) shadow = ends[end].time > now ? ends[end].time : now;
            }
            int in_time = shadow > now && now + estimate[job] <= shadow;
            if (!fits || !(at_head || in_time || size[job] <= extra)) continue;
            if (!at_head && !in_time) extra -= size[job];
            start[job] = now;
            free_nodes -= size[job];
            int place = running;
            for (; place > 0 && ends[place - 1].time > now + estimate[job]; place--) ends[place] = ends[place - 1];
            ends[place] = (Event){now + estimate[job], job};
            push(heap, running++, (Event){now + run[job], job});
            memmove(queue + head + 1, queue + head, (at - head) * sizeof *queue);
            head++;
        }
    }
    return free(heap), free(ends), free(queue), 0;
}
