"""The event loop and what it works on: state, events, allocation, metrics, event trace. Names no policy."""
