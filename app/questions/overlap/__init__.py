"""The run's overlap: how much communication is hidden behind computing, and when is each device idle?"""
