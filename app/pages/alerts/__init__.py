"""Alerts: What is watched for, and what is open?"""

from app.menu import Page

ALERTS = Page(
    name="alerts",
    title="Alerts",
    icon=":material/notifications:",
    asks="What is watched for, and what is open?",
    file="pages/alerts/page.py",
    in_menu=True,
)
