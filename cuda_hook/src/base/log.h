#ifndef EDGESHARE_LOG_H
#define EDGESHARE_LOG_H

/* Says nothing unless EDGESHARE_HOOK_LOG names a file (appended to) or is "stderr". One line a call. */
void es_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* For what somebody must see: goes to the log as well, and without one, once a process, to stderr. */
void es_alarm(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
