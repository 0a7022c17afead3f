"""The dashboard: any store in a browser, every axis a knob, followed while it is written."""
